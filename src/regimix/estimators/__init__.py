"""The scikit-learn face: thin shells that validate, call and copy attributes."""
