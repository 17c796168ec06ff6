# status 2
perfkit
