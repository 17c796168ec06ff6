perfkit --version | head -n 1
perfkit version --json | grep -E '"(version|capture_format)"'
