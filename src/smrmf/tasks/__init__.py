"""What the commands do, from a file to files, without a terminal: each a function that a program may call."""
