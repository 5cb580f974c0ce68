#!/bin/sh
# Runs before the package is removed or upgraded; an upgrade restarts the service afterwards.
set -e

if [ "$1" = remove ] && [ -d /run/systemd/system ]; then
	systemctl disable --now lightweb.service
fi
