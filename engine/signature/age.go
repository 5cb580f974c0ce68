package signature

import "time"

// Window is the greatest accepted difference between the time of a signature and the time of
// this server, in either direction. Most peers use the same limit.
const Window = time.Hour

// checkWindow refuses a time t that differs from now by more than Window.
func checkWindow(t, now time.Time) error {
	if d := now.Sub(t); d > Window || d < -Window {
		return refuseFor("outside_window", "the time of the signature is more than an hour from ours", "it is %s, and was made %s", stamp(now), stamp(t))
	}
	return nil
}

// checkExpires refuses a signature that expired before now, or whose expiry is before its
// creation. The parameter created is nil when the time of creation is not known.
func checkExpires(expires int64, created *int64, now time.Time) error {
	if created != nil && expires < *created {
		return refuse("expires_before_created", "the signature expires before it was created")
	}
	if now.Unix() > expires {
		return refuseFor("expired", "the signature has expired", "it is %s, and it ended %s", stamp(now), stamp(time.Unix(expires, 0)))
	}
	return nil
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
