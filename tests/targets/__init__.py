"""The HTTP target and the demo target, over real sockets."""
