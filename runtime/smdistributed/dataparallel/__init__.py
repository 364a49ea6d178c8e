"""See `tfdp.runtime.smdistributed.dataparallel.tensorflow`."""
