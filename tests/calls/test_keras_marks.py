"""What Keras knows of a tensor besides its numbers is known to sharded calls: what they move must carry it.

Reads the source of the installed Keras, of whichever version. It fails where a new one brings something: find out
whether it travels with tensors (then `runtime/calls` must move it, and a kind in kinds/ must show that), and add it to
one of the lists.
"""

import importlib.util
import os
from pathlib import Path

import pytest
from calls.keras_marks import marks
from calls.launches import keras_version

# What a loss, a layer or a metric finds out about a tensor that it is given.
TRAVELS = {"_keras_mask", "_keras_logits", "op.type", "op.type Softmax", "op.type Sigmoid", "op.inputs"}
# Of symbolic tensors alone, which no divided call sees.
SYMBOLIC = {
    "_keras_history",
    "_keras_history_checked",
    "_keras_shape",
    "_keras_inputs",
    "_keras_inputs_ids_and_indices",
}
SYMBOLIC |= {
    "_type_spec",
    "_is_backend_placeholder",
    "_assign_placeholder",
    "_assign_op",
    "_keras_tensor_symbolic_call",
}
# Of tensors that a call makes and uses itself: results of metrics, losses that it adds, TensorFlow Probability's.
WITHIN_A_CALL = {"_metric_obj", "_unconditional_loss", "_tfp_distribution"}
# Of variables, layers, optimizers, datasets, errors, functions …
NOT_OF_TENSORS = {
    *(
        "_auto_config",
        "_auto_config_error_args",
        "_auto_get_config",
        "_lock",
        "_build_shapes_dict",
        "_fields",
        "_tracked",
    ),
    *(
        "_call_context_args",
        "_call_has_context_arg",
        "_input_shape_arg",
        "_path",
        "_parent_path",
        "_name",
        "_source_name",
    ),
    *("_batch_size", "_element_spec", "_is_multi_process", "_input_dataset", "_keras_sequence", "_initial_epoch"),
    *("_initial_step", "_collected_trainable_weights", "_concrete_stateful_fn", "_direction", "_is_default"),
    *("_distributed_container", "_distribution_strategy", "_sharded_container", "_layout", "_layout_map", "_dtensor"),
    *("_mesh", "_generator", "_model_variables_moving_average", "_keras_call_info_injected", "_keras_api_names"),
    *(
        "_keras_api_names_v1",
        "_keras_initialized",
        "_keras_style",
        "_in_graph_mode",
        "_in_keras_graph",
        "_shape",
        "_dtype",
    ),
    *("_sparse", "_state", "_storage", "_op", "_unique_id", "_as_graph_element", "_use_resource_variables", "_weights"),
    *("_allow_sum_over_batch_size", "_call_result", "_captured_weight_regularizer", "_enable_caching_device"),
    *("_get_compile_args", "_inbound_nodes", "_outbound_nodes", "_is_compiled", "_is_graph_network", "_is_layer"),
    *(
        "_is_legacy_layer",
        "_is_tf_rnn_cell",
        "_is_wrapped_by_loss_scale_optimizer",
        "_learning_rate",
        "_manual_tracking",
    ),
    *(
        "_metrics_lock",
        "_num_constants",
        "_original_attributes_cache",
        "_preemption_handler",
        "_self_tracked_trackables",
    ),
    *(
        "_preserve_input_structure_in_config",
        "_setattr_tracking",
        "_supports_tf_logs",
        "_trainable",
        "_batch_input_shape",
    ),
    *("_v1_compile_was_called", "op.name"),
}
LISTS = (TRAVELS, SYMBOLIC, WITHIN_A_CALL, NOT_OF_TENSORS)


@pytest.fixture(scope="module")
def found():
    name = "tf_keras" if os.environ.get("TF_USE_LEGACY_KERAS") == "1" else "keras"
    return marks(Path(importlib.util.find_spec(name).origin).parent / "src")


@pytest.mark.sample
def test_keras_attaches_nothing_to_tensors_that_is_not_known(found):
    new = {name: sorted(files)[:3] for name, files in found.items() if not any(name in known for known in LISTS)}
    assert not new


@pytest.mark.sample
def test_what_travels_is_found(found):
    """Else the search has become blind."""
    assert found.keys() >= TRAVELS
    assert keras_version() == 3 or found.keys() >= WITHIN_A_CALL


@pytest.mark.sample
def test_no_name_is_on_two_lists():
    names = [name for known in LISTS for name in known]
    assert len(names) == len(set(names))
