"""What a launch is given, arrays of any library and numbers, and the parameters they are bound to."""
