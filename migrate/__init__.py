"""The codemod: what a training script says, what to change, and how that is shown."""
