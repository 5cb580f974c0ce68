package admin

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/instance"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Deliveries are the deliveries of users' activities.
type Deliveries struct{ in *instance.Instance }

// DeliveryChoice selects deliveries, or fan-outs of activities. All conditions must hold.
type DeliveryChoice struct {
	user.DeliveryFilter
	Users  []vocab.Username
	All    bool   // all users, except those that are deleted or still being created
	Status string // only for List: the state of the fan-out, or of one of its deliveries; all states if empty
	Limit  int    // only for List
}

// JobCounts counts the deliveries of a fan-out by state.
type JobCounts = user.JobCounts

// DeliveryStatuses returns the values of DeliveryChoice.Status.
func DeliveryStatuses() []string {
	return append(user.JobStatuses(), user.DeliveryParked, user.DeliveryFailed, user.DeliverySkipped)
}

// deliveryFailures are the users whose databases could not be used.
type deliveryFailures []UserFailure

// recordFailure adds the error of one user. If ctx has ended, it returns the error instead.
func (f *deliveryFailures) recordFailure(ctx context.Context, u vocab.Username, err error) error {
	if err == nil || ctx.Err() != nil {
		return err
	}
	*f = append(*f, describeFailure(u, err))
	return nil
}

// DeliveryJob is the fan-out of an activity, that is, all its deliveries together, with their
// state.
type DeliveryJob struct {
	User vocab.Username `json:"user"`
	user.DeliveryJob
}

// DeliveryList lists fan-outs.
type DeliveryList struct {
	Jobs     []DeliveryJob    `json:"jobs"` // the newest first
	Failures deliveryFailures `json:"failures"`
}

// List returns the newest fan-outs of the users' activities. The fault is NoUser when a named user
// does not exist.
func (ds Deliveries) List(ctx context.Context, c DeliveryChoice) (DeliveryList, error) {
	l := DeliveryList{Jobs: []DeliveryJob{}, Failures: deliveryFailures{}}
	users, err := chooseUsers(ctx, ds.in, c.Users, c.All)
	if err != nil {
		return l, err
	}
	for _, u := range users {
		jobs, err := ds.findJobs(ctx, u, c)
		if err := l.Failures.recordFailure(ctx, u, err); err != nil {
			return l, err
		}
		l.Jobs = append(l.Jobs, jobs...)
		slices.SortStableFunc(l.Jobs, func(a, b DeliveryJob) int {
			return cmp.Or(b.CreatedAt.Compare(a.CreatedAt), bytes.Compare(b.ID[:], a.ID[:]))
		})
		l.Jobs = l.Jobs[:min(len(l.Jobs), c.Limit)]
	}
	return l, nil
}

// findJobs returns the newest fan-outs of one user's activities.
func (ds Deliveries) findJobs(ctx context.Context, u vocab.Username, c DeliveryChoice) (jobs []DeliveryJob, err error) {
	var found []user.DeliveryJob
	err = ds.in.DB.Read(ctx, u, func(ctx context.Context, tx *user.Tx) (err error) {
		found, err = tx.Jobs.List(ctx, c.DeliveryFilter, c.Status, nil, c.Limit, ds.in.Now())
		return err
	})
	for _, j := range found {
		jobs = append(jobs, DeliveryJob{u, j})
	}
	return jobs, err
}

// DeliveryDetail is a delivery to one inbox. If the delivery succeeded over a week ago, only
// inbox, host and targets are stored.
type DeliveryDetail struct {
	Inbox    vocab.ID   `json:"inbox"`
	Host     string     `json:"host"` // empty for this server
	Targets  []vocab.ID `json:"targets"`
	Status   string     `json:"status"` // pending, delivering, parked, delivered, failed or skipped
	Attempts int        `json:"attempts"`
	NextAt   *time.Time `json:"next_attempt_at,omitempty"`
	// LastStatus is the status of the last HTTP response.
	LastStatus     int               `json:"last_status,omitempty"`
	Answer         string            `json:"answer,omitempty"`  // the first 1 KiB of the response
	Headers        map[string]string `json:"headers,omitempty"` // those header fields of the response that help to find a cause
	Location       string            `json:"location,omitempty"`
	RetryAfter     int               `json:"retry_after_seconds,omitempty"`
	Error          string            `json:"error,omitempty"`
	IdempotencyKey string            `json:"idempotency_key,omitempty"`
	RemoteID       string            `json:"remote_id,omitempty"` // the host's id for the accepted activity
	LatencyMS      int64             `json:"latency_ms,omitempty"`
	BytesOut       int64             `json:"bytes_out"`
	BytesIn        int64             `json:"bytes_in"`
	UpdatedAt      *time.Time        `json:"updated_at,omitempty"`
}

// describeDelivery returns the row in the form that commands show.
func describeDelivery(r user.DeliveryReport) DeliveryDetail {
	return DeliveryDetail{Inbox: r.Inbox, Host: r.Host, Targets: append([]vocab.ID{}, r.Targets...), Status: r.Status, Attempts: r.Attempts, NextAt: r.NextAt,
		LastStatus: r.LastStatus, Answer: r.Says(), Headers: r.Fields(), Location: r.Location, RetryAfter: r.RetryAfter, Error: r.Error, IdempotencyKey: r.IdempotencyKey(), RemoteID: r.RemoteID,
		LatencyMS: r.LatencyMS, BytesOut: r.BytesOut, BytesIn: r.BytesIn, UpdatedAt: r.UpdatedAt}
}

// ShownDeliveries is a fan-out with its deliveries.
type ShownDeliveries struct {
	DeliveryJob
	Deliveries []DeliveryDetail `json:"deliveries"`
}

const (
	deliveryPage = 1000 // deliveries per query or transaction
	// maxShown is the greatest number of fan-outs about one activity or object that are shown
	// for each user.
	maxShown = 20
)

// Show returns the fan-out with the id job, or the fan-outs about id, which is the id of an
// activity or object. For each user the newest fan-out comes first. If id belongs to a user of
// this server, Show reads only that user's database, and otherwise the databases of all users.
// The fault is NotFound when there is no such fan-out.
func (ds Deliveries) Show(ctx context.Context, job uuid.UUID, id vocab.ID) (all []ShownDeliveries, failures []UserFailure, err error) {
	c := DeliveryChoice{DeliveryFilter: user.DeliveryFilter{Job: job, Activity: id}, Limit: maxShown}
	users, err := ds.chooseOwners(ctx, c)
	if err != nil {
		return nil, nil, err
	}
	var failed deliveryFailures
	for _, u := range users {
		jobs, err := ds.findJobs(ctx, u, c)
		for _, j := range jobs {
			shown := ShownDeliveries{DeliveryJob: j, Deliveries: []DeliveryDetail{}}
			if shown.Deliveries, err = ds.readDeliveries(ctx, u, j.ID); err != nil {
				break
			}
			all = append(all, shown)
		}
		if err := failed.recordFailure(ctx, u, err); err != nil {
			return all, failed, err
		}
		if job != (uuid.UUID{}) && len(all) > 0 {
			break
		}
	}
	if len(all) == 0 && len(failed) == 0 {
		err = unknownDelivery(c)
	}
	return all, failed, err
}

// unknownDelivery returns the fault for a choice that matches no delivery.
func unknownDelivery(c DeliveryChoice) error {
	what := fmt.Sprintf("nothing of %.200s is owed to anybody", c.Activity)
	if c.Job != (uuid.UUID{}) {
		what = fmt.Sprintf("there is no delivery job %s", c.Job)
	}
	return fault.New(fault.NotFound, what).WithHint("lightweb deliver list --all")
}

// chooseOwners returns the users whose deliveries may match.
func (ds Deliveries) chooseOwners(ctx context.Context, c DeliveryChoice) ([]vocab.Username, error) {
	users, err := chooseUsers(ctx, ds.in, nil, true)
	if u, _, ok := ds.in.Local.Holder(c.Activity); ok && c.Activity != "" {
		users = slices.DeleteFunc(users, func(v vocab.Username) bool { return v != u })
	}
	return users, err
}

// readDeliveries reads all deliveries of a fan-out.
func (ds Deliveries) readDeliveries(ctx context.Context, u vocab.Username, job uuid.UUID) (all []DeliveryDetail, err error) {
	err = ds.in.DB.Read(ctx, u, func(ctx context.Context, tx *user.Tx) error {
		all = []DeliveryDetail{}
		for after := int64(math.MinInt64); ; {
			rows, err := tx.Jobs.ListDeliveries(ctx, job, after, deliveryPage, ds.in.Now())
			if err != nil {
				return err
			}
			for _, r := range rows {
				all, after = append(all, describeDelivery(r)), r.ID
			}
			if len(rows) < deliveryPage {
				return nil
			}
		}
	})
	return all, err
}

// DeliveryState counts the deliveries to a host that are in one state.
type DeliveryState struct {
	user.DeliveryState
	Closed   *time.Time `json:"closed_until,omitempty"`   // until then nothing is sent to the host
	Inactive *time.Time `json:"inactive_since,omitempty"` // set while the host is inactive, so that its deliveries are parked
	Paused   *time.Time `json:"paused_since,omitempty"`   // set while the operator has paused the host
}

// DeliveryStatus counts deliveries by host and state.
type DeliveryStatus struct {
	Users    int              `json:"users"`
	Counts   JobCounts        `json:"counts"`
	States   []DeliveryState  `json:"states"` // one for each host and state
	Failures deliveryFailures `json:"failures"`
}

// CountByHost counts the users' deliveries by host and state, except deliveries that succeeded
// over a week ago. The fault is NoUser when a named user does not exist.
func (ds Deliveries) CountByHost(ctx context.Context, c DeliveryChoice) (DeliveryStatus, error) {
	s := DeliveryStatus{States: []DeliveryState{}, Failures: deliveryFailures{}}
	users, err := chooseUsers(ctx, ds.in, c.Users, c.All)
	if err != nil {
		return s, err
	}
	hosts, err := ds.in.DB.Instance.Hosts.List(ctx, true)
	if err != nil {
		return s, err
	}
	troubled := make(map[string]Host, len(hosts))
	for _, h := range hosts {
		troubled[h.Host] = describeHost(h, ds.in.Now())
	}
	s.Users = len(users)
	type place struct{ host, status string }
	at := map[place]*DeliveryState{}
	for _, u := range users {
		var states []user.DeliveryState
		err := ds.in.DB.Read(ctx, u, func(ctx context.Context, tx *user.Tx) (err error) {
			states, err = tx.Jobs.CountStates(ctx, ds.in.Now())
			return err
		})
		if err := s.Failures.recordFailure(ctx, u, err); err != nil {
			return s, err
		}
		for _, d := range states {
			key := place{d.Host, d.Status}
			if at[key] == nil {
				h := troubled[d.Host]
				at[key] = &DeliveryState{DeliveryState: user.DeliveryState{Host: d.Host, Status: d.Status, Oldest: d.Oldest}, Inactive: h.InactiveAt, Paused: h.PausedAt}
				if h.NextAttempt != nil && h.NextAttempt.After(ds.in.Now()) {
					at[key].Closed = h.NextAttempt
				}
			}
			at[key].addState(d)
			addCounts(&s.Counts, d)
		}
	}
	for _, d := range at {
		s.States = append(s.States, *d)
	}
	slices.SortFunc(s.States, func(a, b DeliveryState) int {
		return cmp.Or(cmp.Compare(a.Host, b.Host), cmp.Compare(a.Status, b.Status))
	})
	return s, nil
}

// addState adds the deliveries of one more user.
func (s *DeliveryState) addState(d user.DeliveryState) {
	s.Count += d.Count
	if d.Oldest.Before(s.Oldest) {
		s.Oldest = d.Oldest
	}
	if d.NextAt != nil && (s.NextAt == nil || d.NextAt.Before(*s.NextAt)) {
		s.NextAt = d.NextAt
	}
	if d.Error != "" {
		s.Error = d.Error
	}
}

// addCounts adds deliveries to the count of their state.
func addCounts(c *JobCounts, d user.DeliveryState) {
	c.Total += d.Count
	switch d.Status {
	case user.DeliveryDelivered:
		c.Delivered += d.Count
	case user.DeliveryFailed:
		c.Failed += d.Count
	case user.DeliverySkipped:
		c.Skipped += d.Count
	default:
		c.Pending += d.Count
	}
}
