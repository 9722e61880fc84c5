package packages

import "os/exec"

func ownGroup(*exec.Cmd) {}

func endGroup(*exec.Cmd) {}
