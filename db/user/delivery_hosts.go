package user

import (
	"context"
	"strings"
	"time"
)

// AllHostsOf is the beginning of some entries in a list of hosts. Such an entry stands for a
// domain and all hosts below it.
const AllHostsOf = "*."

// hostPatterns divides a list of hosts. The result hosts has the single hosts, and the result
// domains has the entries that begin with AllHostsOf. The result patterns has the LIKE patterns
// for these entries, to be compared with a dot followed by the host.
func hostPatterns(list []string) (hosts, domains, patterns []string) {
	for _, entry := range list {
		if domain, ok := strings.CutPrefix(entry, AllHostsOf); ok {
			domains, patterns = append(domains, entry), append(patterns, "%."+literally.Replace(domain))
		} else {
			hosts = append(hosts, entry)
		}
	}
	return hosts, domains, patterns
}

// literally escapes the characters that are wildcards of LIKE.
var literally = strings.NewReplacer(`\`, `\\`, `_`, `\_`, `%`, `\%`)

// Resume changes up to n parked deliveries to a host, so that they are due now. If waiting is
// true, it also changes pending deliveries that are due later, within the same n. Deliveries with
// the earliest planned time come first. Resume returns how many deliveries it changed.
func (t Deliveries) Resume(ctx context.Context, host string, n int, waiting bool, now time.Time) (int, error) {
	count, err := t.execBeside(ctx, "resume deliveries", `UPDATE deliveries SET status = 'pending', next_at = @now, updated_at = @now WHERE id IN (
		SELECT id FROM deliveries WHERE status IN ('pending', 'parked') AND host = @host AND (status = 'parked' OR @waiting AND next_at > @now) AND lease_owner IS NULL
		ORDER BY next_at LIMIT @n FOR UPDATE SKIP LOCKED)`, named{"host": host, "now": now, "n": n, "waiting": waiting})
	return int(count), err
}

// ListParkedHosts returns the hosts to which deliveries are parked.
func (t Deliveries) ListParkedHosts(ctx context.Context) (parked []string, err error) {
	err = t.query(ctx, "list hosts", column(&parked), `SELECT DISTINCT host FROM deliveries WHERE status = 'parked' ORDER BY host`)
	return parked, err
}

// HasParked reports whether a delivery to a host is parked. It also sees deliveries that Resume
// passes over because another transaction has locked them.
func (t Deliveries) HasParked(ctx context.Context, host string) (has bool, err error) {
	err = t.row(ctx, "look for parked deliveries", `SELECT EXISTS (SELECT FROM deliveries WHERE status = 'parked' AND host = $1)`, []any{host}, &has)
	return has, err
}

// many is the least number of due deliveries to a host at which PutOff delays them. PutOff delays
// so many because each claim would have to read past them.
const many = 500

// PutOff delays up to n of the due deliveries to a host until a later time. It does nothing if
// the number of due deliveries is below the constant many.
func (t Deliveries) PutOff(ctx context.Context, host string, until time.Time, n int, now time.Time) error {
	_, err := t.execBeside(ctx, "put off deliveries", `UPDATE deliveries SET next_at = @until, updated_at = @now WHERE id IN (
		SELECT id FROM deliveries WHERE status = 'pending' AND host = @host AND next_at <= @now AND lease_owner IS NULL ORDER BY next_at LIMIT @n FOR UPDATE SKIP LOCKED)
		AND (SELECT count(*) FROM (SELECT FROM deliveries WHERE status = 'pending' AND host = @host AND next_at <= @now LIMIT @many) AS first) = @many`,
		named{"host": host, "until": until, "now": now, "n": n, "many": many})
	return err
}

// ListDueHosts returns those entries of a list of hosts for which a delivery is due. An entry
// may begin with AllHostsOf.
func (t Deliveries) ListDueHosts(ctx context.Context, now time.Time, list []string) (due []string, err error) {
	hosts, domains, patterns := hostPatterns(list)
	err = t.query(ctx, "list hosts", column(&due), `
		SELECT h FROM unnest(@hosts::text[]) h WHERE EXISTS (SELECT FROM deliveries WHERE status = 'pending' AND host = h AND next_at <= @now)
		UNION ALL SELECT domain FROM unnest(@domains::text[], @patterns::text[]) AS d (domain, pattern) WHERE EXISTS (
			SELECT FROM deliveries WHERE status = 'pending' AND '.' || host LIKE pattern AND next_at <= @now)
		ORDER BY 1`, named{"now": now, "hosts": hosts, "domains": domains, "patterns": patterns})
	return due, err
}
