package admin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/instance"
	"github.com/lightweb/lightweb/engine/policy"
	"github.com/lightweb/lightweb/engine/registry"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Domains are the domains on the lists of the policy.
type Domains struct{ in *instance.Instance }

// The lists of domains in the policy.
const (
	DomainBlocked = "blocked"
	DomainAllowed = "allowed" // used when federation.mode is allowlist
)

// Domain is a domain on a list of the policy.
type Domain struct {
	Domain  string `json:"domain"`
	State   string `json:"state"` // blocked or allowed
	Comment string `json:"comment"`
}

// List returns the blocked domains and then the allowed ones. Both are sorted by name.
func (ds Domains) List() ([]Domain, error) {
	s, err := ds.in.Registry.Server()
	if err != nil {
		return nil, err
	}
	out := make([]Domain, 0, len(s.BlockedDomains)+len(s.AllowedDomains))
	for _, d := range s.BlockedDomains {
		out = append(out, Domain{d, DomainBlocked, s.Comments[d]})
	}
	for _, d := range s.AllowedDomains {
		out = append(out, Domain{d, DomainAllowed, s.Comments[d]})
	}
	return out, nil
}

// DomainChange adds domains to a list, or removes them from it.
type DomainChange struct {
	List    string   // DomainBlocked or DomainAllowed
	Remove  bool     // remove the domains from the list
	Domains []string // as the operator wrote them
	Comment string   // for domains that are added to the list; if empty, the stored comment stays
	DryRun  bool     // change nothing
}

// DomainReport is the result of a change.
type DomainReport struct {
	Changed   []string `json:"changed"`
	Unchanged []string `json:"unchanged"` // already in the requested state
	// Ties count the users who are acquainted with actors on newly blocked domains.
	Ties
	DryRun bool `json:"dry_run"`
}

// Ties count the active users of this server who are acquainted with actors on domains that were
// blocked in this change. A user is acquainted with an actor if the user's database may have
// data of the actor. So the counts may be too high but never too low.
type Ties struct {
	Affected  []DomainTies `json:"affected"`
	Users     int          `json:"users"`     // users who are acquainted with an actor on any of the domains
	Following int          `json:"following"` // users who may follow an actor on any of the domains
}

// DomainTies are the ties with one domain.
type DomainTies struct {
	Domain    string `json:"domain"`
	Users     int    `json:"users"`
	Following int    `json:"following"`
}

// Change changes the policy. A serving engine applies the change within a second. If a domain is
// malformed, or this server's own domain would be blocked, the fault is Invalid and nothing
// changes. If no domain changed, the fault is NotFound for a removal, and Conflict otherwise. If
// only some domains changed, the fault is Partial.
func (ds Domains) Change(ctx context.Context, c DomainChange) (DomainReport, error) {
	r := DomainReport{Changed: []string{}, Unchanged: []string{}, Ties: Ties{Affected: []DomainTies{}}, DryRun: c.DryRun}
	if err := checkComment(c.Comment); err != nil {
		return r, err
	}
	err := ds.in.Registry.UpdateServer(func(s *registry.Server) (bool, error) {
		list := &s.BlockedDomains
		if c.List == DomainAllowed {
			list = &s.AllowedDomains
		}
		for _, written := range c.Domains {
			d, err := ds.parseEntry(written, *list, c)
			if err != nil {
				return false, err
			}
			if changeList(s, list, d, c.Remove, c.Comment) {
				r.Changed = append(r.Changed, d)
			} else if !slices.Contains(r.Changed, d) {
				r.Unchanged = append(r.Unchanged, d)
			}
		}
		if c.List == DomainBlocked && !c.Remove {
			var err error
			if r.Ties, err = ds.findTies(ctx, r.Changed); err != nil {
				return false, err
			}
		}
		return len(r.Changed) > 0 && !c.DryRun, nil
	})
	if err != nil {
		return r, err
	}
	return r, unchangedFault(r.Unchanged, len(r.Changed), c.Remove, c.List, "lightweb domain list")
}

// parseEntry returns a domain in the form that the lists store. If c.Remove is true, it accepts
// every entry of the list in any form, because an operator may have written the entry into the
// file.
func (ds Domains) parseEntry(written string, list []string, c DomainChange) (string, error) {
	if name := strings.ToLower(strings.TrimSpace(written)); c.Remove && slices.Contains(list, name) {
		return name, nil
	}
	d, err := policy.ParseDomain(written)
	switch {
	case errors.Is(err, policy.ErrObfuscated):
		return "", fault.Wrap(fault.Invalid, fmt.Sprintf("%.60q: a domain is written without *", written), err).WithHint("a domain stands for everything below it, too")
	case err != nil:
		return "", err
	case c.List == DomainBlocked && !c.Remove && ds.isOurs(d):
		return "", fault.New(fault.Invalid, fmt.Sprintf("%.60q is this server's own domain, or above it", written))
	}
	return d, nil
}

// isOurs reports whether d is this server's own domain, or a domain above it.
func (ds Domains) isOurs(d string) bool {
	return policy.NewDomains([]string{d}, nil, policy.Open).Blocking(ds.in.Local.Host()) != ""
}

// findTies counts the active users who are acquainted with actors on the domains.
func (ds Domains) findTies(ctx context.Context, domains []string) (Ties, error) {
	t := Ties{Affected: []DomainTies{}}
	if len(domains) == 0 {
		return t, nil
	}
	type known map[vocab.Username]bool // true: the user may follow an actor there
	blocked, all, each := policy.NewDomains(domains, nil, policy.Open), known{}, map[string]known{}
	err := ds.in.DB.Instance.Acquaintances.EachHost(ctx, func(host string, u vocab.Username, follows bool) {
		d := blocked.Blocking(host)
		if d == "" {
			return
		}
		if each[d] == nil {
			each[d] = known{}
		}
		each[d][u] = each[d][u] || follows
		all[u] = all[u] || follows
	})
	count := func(k known) (following int) {
		for _, follows := range k {
			if follows {
				following++
			}
		}
		return following
	}
	for d, k := range each {
		t.Affected = append(t.Affected, DomainTies{d, len(k), count(k)})
	}
	slices.SortFunc(t.Affected, func(a, b DomainTies) int { return strings.Compare(a.Domain, b.Domain) })
	t.Users, t.Following = len(all), count(all)
	return t, err
}

// DomainImport is the result of an import.
type DomainImport struct {
	Rows       int          `json:"rows"`
	Changed    []string     `json:"changed"`    // newly blocked
	Unchanged  int          `json:"unchanged"`  // already blocked
	Skipped    int          `json:"skipped"`    // rows with severity silence or noop, because this server can only block
	Obfuscated int          `json:"obfuscated"` // refused because a part of the domain is hidden
	Refused    []RefusedRow `json:"refused"`    // including the obfuscated ones
	Ties
	DryRun bool `json:"dry_run"`
}

// RefusedRow is a line that was refused.
type RefusedRow struct {
	Line    int    `json:"line"`
	Text    string `json:"text"` // the domain as the imported list writes it
	Problem string `json:"problem"`
}

// Import blocks the domains of a list in the format of policy.ReadBlocklist. It reports the
// lines that it refuses, and applies all others in one change. The faults are those of
// ReadBlocklist, and Invalid when every line is refused.
func (ds Domains) Import(ctx context.Context, list io.Reader, dryRun bool) (DomainImport, error) {
	rows, err := policy.ReadBlocklist(list)
	if err != nil {
		return DomainImport{}, err
	}
	r := DomainImport{Rows: len(rows), Changed: []string{}, Refused: []RefusedRow{}, DryRun: dryRun}
	blocks := slices.DeleteFunc(rows, func(row policy.Row) bool { return !ds.takeRow(&row, &r) })
	if len(blocks)+r.Skipped == 0 {
		return r, fault.New(fault.Invalid, "the list has no line that can be taken"+r.firstProblem())
	}
	err = ds.in.Registry.UpdateServer(func(s *registry.Server) (bool, error) {
		there := make(map[string]bool, len(s.BlockedDomains))
		for _, d := range s.BlockedDomains {
			there[d] = true
		}
		for _, row := range blocks {
			if there[row.Domain] {
				r.Unchanged++
				continue
			}
			there[row.Domain] = true
			r.Changed = append(r.Changed, row.Domain)
			if _, commented := s.Comments[row.Domain]; row.Comment != "" && !commented {
				s.Comments[row.Domain] = truncateText(row.Comment, registry.MaxComment)
			}
		}
		slices.Sort(r.Changed)
		s.BlockedDomains = append(s.BlockedDomains, r.Changed...)
		var err error
		r.Ties, err = ds.findTies(ctx, r.Changed)
		return len(r.Changed) > 0 && !dryRun, err
	})
	return r, err
}

// takeRow reports whether a line blocks a domain. If it does not, takeRow counts the line in r.
func (ds Domains) takeRow(row *policy.Row, r *DomainImport) bool {
	if row.Err == nil && row.Severity == policy.Suspend && ds.isOurs(row.Domain) {
		row.Err = fault.New(fault.Invalid, "it is this server's own domain, or above it")
	}
	switch {
	case row.Err != nil:
		if errors.Is(row.Err, policy.ErrObfuscated) {
			r.Obfuscated++
		}
		r.Refused = append(r.Refused, RefusedRow{row.Line, truncateText(row.Text, 200), row.Err.Error()})
		return false
	case row.Severity != policy.Suspend:
		r.Skipped++
		return false
	}
	return true
}

// firstProblem describes the first refused line.
func (r DomainImport) firstProblem() string {
	if len(r.Refused) == 0 {
		return ""
	}
	return fmt.Sprintf("; the first one: line %d: %s", r.Refused[0].Line, r.Refused[0].Problem)
}

// truncateText returns the first n characters of text.
func truncateText(text string, n int) string {
	if r := []rune(text); len(r) > n {
		return string(r[:n])
	}
	return text
}

// Export writes the blocked domains in Mastodon's format.
func (ds Domains) Export(w io.Writer) error {
	s, err := ds.in.Registry.Server()
	if err != nil {
		return err
	}
	rows := make([]policy.Row, len(s.BlockedDomains))
	for i, d := range s.BlockedDomains {
		rows[i] = policy.Row{Domain: d, Severity: policy.Suspend, Comment: s.Comments[d]}
	}
	return policy.WriteBlocklist(w, rows)
}
