"""The environments that can start a job: one module each, asked in turn by `tfdp.runtime.job`."""
