package policy

import (
	"context"
	"net/netip"
)

// payerKey is where a context holds who pays.
type payerKey struct{}

// addressPayer begins the names of payers that are client addresses.
const addressPayer = "address "

// NameAddress returns the client of an address as a payer: its networks pay with it.
func NameAddress(client netip.Prefix) string { return addressPayer + client.String() }

// PaidByAddress returns ctx for work that the client of an address causes, which nobody has proven
// to be anybody yet.
func PaidByAddress(ctx context.Context, client netip.Prefix) context.Context {
	return context.WithValue(ctx, payerKey{}, NameAddress(client))
}

// PaidByDomain returns ctx for work that an actor of a host causes who has proven to be that actor.
func PaidByDomain(ctx context.Context, host string) context.Context {
	return context.WithValue(ctx, payerKey{}, "domain "+RegistrableDomain(host))
}

// PayerOf returns who pays for the work of ctx; empty for this server itself, and for its users.
func PayerOf(ctx context.Context) string {
	payer, _ := ctx.Value(payerKey{}).(string)
	return payer
}
