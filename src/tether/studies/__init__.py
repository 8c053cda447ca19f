"""Published experiments retold, each as a command of its own."""
