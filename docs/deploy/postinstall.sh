#!/bin/sh
# Runs when the package has been installed or upgraded.
set -e

systemd-sysusers lightweb.conf
if [ -e /etc/lightweb/lightweb.toml ]; then # it may hold the address of a database
	chgrp lightweb /etc/lightweb/lightweb.toml
	chmod 0640 /etc/lightweb/lightweb.toml
fi

if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
	if [ -n "$2" ]; then # an upgrade: $2 is the version before, which may still serve
		runuser -u lightweb -- /usr/bin/lightweb db migrate --config /etc/lightweb/lightweb.toml ||
			echo "lightweb: run 'lightweb db migrate' as the account lightweb; users whose databases are behind are answered 503" >&2
		systemctl try-restart lightweb.service
	fi
fi
