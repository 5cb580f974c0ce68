package server

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"net/http"
	"slices"
	"time"

	"github.com/julienschmidt/httprouter"

	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/feed"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Bounds of a page of deliveries.
const (
	defaultJobs       = 20
	maxJobs           = 100
	defaultDeliveries = 100
	maxDeliveries     = 1000
)

// deliveryJob is the fan-out of an activity, with its progress.
type deliveryJob struct {
	JobID            string         `json:"jobId"`
	ActivityID       vocab.ID       `json:"activityId"`
	ObjectID         vocab.ID       `json:"objectId,omitempty"`
	Type             string         `json:"type"`
	Status           string         `json:"status"`
	Counts           user.JobCounts `json:"counts"`
	CreatedAt        time.Time      `json:"createdAt"`
	FirstDeliveredAt *time.Time     `json:"firstDeliveredAt,omitempty"`
}

// deliveryJobs is a page of delivery jobs.
type deliveryJobs struct {
	Items []deliveryJob `json:"items"`
	Next  string        `json:"next,omitempty"`
}

// delivery is the delivery of an activity to one inbox. If it succeeded more than a week ago,
// only its inbox, host and targets are still stored.
type delivery struct {
	InboxURL        vocab.ID          `json:"inboxUrl"`
	Host            string            `json:"host"` // empty for this server
	Targets         []vocab.ID        `json:"targets"`
	Status          string            `json:"status"`
	Attempts        int               `json:"attempts"`
	NextAttemptAt   *time.Time        `json:"nextAttemptAt,omitempty"`
	ResponseStatus  int               `json:"responseStatus,omitempty"`
	ResponseBody    string            `json:"responseBody,omitempty"`
	ResponseHeaders map[string]string `json:"responseHeaders,omitempty"`
	Location        string            `json:"location,omitempty"`
	RetryAfter      int               `json:"retryAfter,omitempty"` // seconds
	Error           string            `json:"error,omitempty"`
	IdempotencyKey  string            `json:"idempotencyKey,omitempty"`
	RemoteID        string            `json:"remoteActivityId,omitempty"`
	LatencyMS       int64             `json:"latencyMs"`
	BytesSent       int64             `json:"bytesSent"`
	BytesReceived   int64             `json:"bytesReceived"`
	UpdatedAt       *time.Time        `json:"updatedAt,omitempty"`
}

// deliveryReport is a job with a page of its deliveries.
type deliveryReport struct {
	deliveryJob
	Deliveries []delivery `json:"deliveries"`
	Next       string     `json:"next,omitempty"`
}

// getDeliveries serves a page of the fan-outs of the user's activities, the newest first.
func (s *clientAPI) getDeliveries(a *answer, r *http.Request, _ httprouter.Params) error {
	t, err := s.authorize(a, r, instance.ScopeRead)
	if err != nil {
		return err
	}
	u := t.User
	q, err := readQuery(r, "limit", "cursor", "status", "host", "activity")
	if err != nil {
		return err
	}
	limit, err := limitOf(q, defaultJobs, maxJobs)
	if err != nil {
		return err
	}
	status := q.Get("status")
	if q.Has("status") && !slices.Contains(append(user.JobStatuses(), user.DeliveryParked, user.DeliveryFailed, user.DeliverySkipped), status) {
		return fault.New(fault.Invalid, "there is no such status of deliveries").WithCode("bad_status")
	}
	var f user.DeliveryFilter
	if q.Has("host") {
		host, err := parseHost(q.Get("host"))
		if err != nil {
			return err
		}
		f.Hosts = []string{host}
	}
	if q.Has("activity") {
		if f.Activity, err = vocab.ParseID(q.Get("activity")); err != nil {
			return err
		}
	}
	scope := u.String() + "/deliveries"
	after, err := feed.DecodeCursor(scope, q.Get("cursor"))
	if err != nil {
		return err
	}
	var jobs []user.DeliveryJob
	err = s.owners.Read(r.Context(), u, func(ctx context.Context, tx *user.Tx) (err error) {
		jobs, err = tx.Jobs.List(ctx, f, status, after, limit+1, s.now())
		return err
	})
	if err != nil {
		return fmt.Errorf("read deliveries: %w", err)
	}
	page := deliveryJobs{Items: []deliveryJob{}}
	jobs, page.Next = cutRows(jobs, limit, scope, func(j user.DeliveryJob) user.Place { return user.Place{At: j.CreatedAt, ID: j.ID} })
	for _, j := range jobs {
		page.Items = append(page.Items, jobOf(j))
	}
	linkNext(a, r, q, page.Next)
	return a.sendJSON(r, page)
}

// parseHost returns a host as deliveries store it. The empty host stands for this server.
func parseHost(written string) (string, error) {
	if written == "" {
		return "", nil
	}
	host, err := vocab.ParseHost(written)
	if err != nil {
		return "", fault.Wrap(fault.Invalid, fault.Public(err), err).WithCode("bad_query")
	}
	return host, nil
}

// getDeliveryJob serves one fan-out with a page of its deliveries. A job of another user is in
// another database, so the answer is the same as for a job that does not exist.
func (s *clientAPI) getDeliveryJob(a *answer, r *http.Request, p httprouter.Params) error {
	t, err := s.authorize(a, r, instance.ScopeRead)
	if err != nil {
		return err
	}
	u := t.User
	q, err := readQuery(r, "limit", "cursor")
	if err != nil {
		return err
	}
	limit, err := limitOf(q, defaultDeliveries, maxDeliveries)
	if err != nil {
		return err
	}
	id, err := parseID(p, "job")
	if err != nil {
		return err
	}
	scope := u.String() + "/deliveries/" + id.String()
	place, err := feed.DecodeCursor(scope, q.Get("cursor"))
	if err != nil {
		return err
	}
	after := int64(math.MinInt64)
	if place != nil {
		after = int64(binary.BigEndian.Uint64(place.ID[8:]))
	}
	var job *user.DeliveryJob
	var rows []user.DeliveryReport
	err = s.owners.Read(r.Context(), u, func(ctx context.Context, tx *user.Tx) (err error) {
		if job, err = tx.Jobs.Find(ctx, id, s.now()); job != nil && err == nil {
			rows, err = tx.Jobs.ListDeliveries(ctx, id, after, limit+1, s.now())
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("read delivery job: %w", err)
	}
	if job == nil {
		return errNothing
	}
	report := deliveryReport{deliveryJob: jobOf(*job), Deliveries: []delivery{}}
	for n, row := range rows {
		if n == limit {
			last := user.Place{At: job.CreatedAt}
			binary.BigEndian.PutUint64(last.ID[8:], uint64(rows[n-1].ID))
			report.Next = feed.EncodeCursor(scope, last)
			break
		}
		report.Deliveries = append(report.Deliveries, deliveryOf(row))
	}
	linkNext(a, r, q, report.Next)
	return a.sendJSON(r, report)
}

func jobOf(j user.DeliveryJob) deliveryJob {
	return deliveryJob{JobID: j.ID.String(), ActivityID: j.Activity, ObjectID: j.Object, Type: j.Type, Status: j.Status, Counts: j.JobCounts,
		CreatedAt: j.CreatedAt, FirstDeliveredAt: j.FirstAt}
}

func deliveryOf(r user.DeliveryReport) delivery {
	return delivery{InboxURL: r.Inbox, Host: r.Host, Targets: append([]vocab.ID{}, r.Targets...), Status: r.Status, Attempts: r.Attempts, NextAttemptAt: r.NextAt,
		ResponseStatus: r.LastStatus, ResponseBody: r.Says(), ResponseHeaders: r.Fields(), Location: r.Location, RetryAfter: r.RetryAfter, Error: r.Error, IdempotencyKey: r.IdempotencyKey(),
		RemoteID: r.RemoteID, LatencyMS: r.LatencyMS, BytesSent: r.BytesOut, BytesReceived: r.BytesIn, UpdatedAt: r.UpdatedAt}
}
