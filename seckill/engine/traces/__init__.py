"""Where traces are on: the use cases that tell how long each step took. Where they are off, none of this is loaded."""
