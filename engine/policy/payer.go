package policy

import (
	"context"
	"net/netip"
)

// payerKey is the key of a context's payer.
type payerKey struct{}

// addressPayer is the prefix of payers that are client addresses.
const addressPayer = "address "

// NameAddress returns the payer for a client address. In a stock, the networks around that address
// pay, too.
func NameAddress(client netip.Prefix) string { return addressPayer + client.String() }

// PaidByAddress returns ctx for work that a client causes before its identity is verified. The
// client's address pays.
func PaidByAddress(ctx context.Context, client netip.Prefix) context.Context {
	return context.WithValue(ctx, payerKey{}, NameAddress(client))
}

// PaidByDomain returns ctx for work that a verified actor of a host causes. The host's
// registrable domain pays.
func PaidByDomain(ctx context.Context, host string) context.Context {
	return context.WithValue(ctx, payerKey{}, "domain "+RegistrableDomain(host))
}

// PayerOf returns the payer for the work of ctx. It returns an empty string for work that this
// server or one of its users causes.
func PayerOf(ctx context.Context) string {
	payer, _ := ctx.Value(payerKey{}).(string)
	return payer
}
