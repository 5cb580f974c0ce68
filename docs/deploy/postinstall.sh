#!/bin/sh
# Runs when the package has been installed or upgraded.
set -e

systemd-sysusers lightweb.conf
# The configuration may hold the address of a database.
chgrp lightweb /etc/lightweb/lightweb.toml
chmod 0640 /etc/lightweb/lightweb.toml

if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
	if [ -n "$2" ]; then # an upgrade: $2 is the version before
		systemctl try-restart lightweb.service
	fi
fi
