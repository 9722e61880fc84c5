package cli

func alive(int) bool { return false }
