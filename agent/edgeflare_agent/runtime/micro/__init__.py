"""TensorFlow Lite Micro, which runs models on microcontrollers, as a runtime."""
