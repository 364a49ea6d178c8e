"""What runs with the script in a process of a proof; started by `verify.runs`, imported by nobody."""
