#!/bin/sh
# fake_torch_python.sh - stands for a Python interpreter with PyTorch. It prints the
# arguments of the script that it is given.
case $1 in
*gpt2_torch_speed.py | *squeeze_torch_speed.py) shift ;;
*) exit 1 ;;
esac
shift # layers=, or n=
echo "PyTorch fake, $*"
