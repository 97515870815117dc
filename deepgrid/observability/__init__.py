"""What a supervisor tells about itself: metrics and liveness."""
