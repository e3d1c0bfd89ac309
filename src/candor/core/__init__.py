"""What all rooms use: errors, files, settings, registries, progress, versions."""
