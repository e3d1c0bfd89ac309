"""What a run learned, over many windows: a question a file, answered by a `ModelFinding`."""
