"""What the commands do: each function is called by the command of its name, and prints."""
