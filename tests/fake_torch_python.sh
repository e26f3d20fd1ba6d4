#!/bin/sh
# fake_torch_python.sh - stands in for an interpreter with PyTorch: says which
# script it is given and its words.
case $1 in
*gpt2_torch_speed.py) shift ;;
*) exit 1 ;;
esac
shift # layers=
echo "PyTorch fake, $*"
