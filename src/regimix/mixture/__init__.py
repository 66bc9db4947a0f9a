"""All components together: searching for them, and what they amount to."""
