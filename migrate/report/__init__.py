"""What a finding or a refusal looks like to a person, and which exit code it means."""
