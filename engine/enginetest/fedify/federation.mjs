// The Fedify server: its actors, the documents that it serves, and its responses to activities.

import {
  createExponentialBackoffPolicy,
  createFederation,
  generateCryptoKeyPair,
  InProcessMessageQueue,
  MemoryKvStore,
  ParallelMessageQueue,
} from "@fedify/fedify";
import {
  Accept,
  Activity,
  Announce,
  Create,
  Delete,
  Endpoints,
  Follow,
  isActor,
  Move,
  Note,
  Person,
  PUBLIC_COLLECTION,
  Reject,
  Undo,
} from "@fedify/vocab";

const QUICK_RETRIES = { initialDelay: { milliseconds: 200 }, jitter: false, maxAttempts: 5 };
const PAGE_SIZE = 3; // small, so that a few posts fill several pages

class LocalActor {
  followers = new Map(); // actor id to recipient
  following = new Map(); // actor id to {follow: activity id, state: "pending" | "accepted"}
  sent = new Map(); // activity id to {activity, recipients}, oldest first
  notes = new Map(); // object id to Note, or to Tombstone if the note is deleted

  constructor(name, keyPairs) {
    this.name = name;
    this.keyPairs = keyPairs;
  }

  // outbox returns the public activities whose notes are not deleted, newest first.
  outbox() {
    const listed = (activity) =>
      isPublic(activity) && (activity instanceof Announce ||
        (activity instanceof Create && this.notes.get(activity.objectId.href) instanceof Note));
    return [...this.sent.values()].map(({ activity }) => activity).filter(listed).reverse();
  }
}

export async function createPeer({ origin, firstKnock, rsaBits, names, journal }) {
  const keyPairs = () => Promise.all([rsaKeyPair(rsaBits), generateCryptoKeyPair("Ed25519")]);
  const actors = new Map(
    await Promise.all(names.map(async (name) => [name, new LocalActor(name, await keyPairs())])),
  );
  const peer = { origin, actors, followAnswer: "accept" };

  const federation = createFederation({
    kv: new MemoryKvStore(),
    // Both queues wake at once when something is enqueued. The inbox has one worker, so that it
    // handles activities in their order.
    queue: { inbox: new InProcessMessageQueue(), outbox: new ParallelMessageQueue(new InProcessMessageQueue(), 8) },
    manuallyStartQueue: true,
    origin,
    firstKnock,
    allowPrivateAddress: true,
    inboxRetryPolicy: () => null, // an activity that a listener fails on is reported once
    outboxRetryPolicy: createExponentialBackoffPolicy(QUICK_RETRIES),
    circuitBreaker: false, // a test that refuses five deliveries must still get the sixth
  });
  serveActors(federation, peer);
  serveCollections(federation, peer);
  serveObjects(federation, peer);
  federation.setNodeInfoDispatcher("/nodeinfo/2.1", () => ({
    software: { name: "lightweb-fedify-peer", version: "2.3.8" },
    protocols: ["activitypub"],
    usage: { users: { total: actors.size }, localPosts: 0, localComments: 0 },
  }));
  hear(federation, peer, journal);

  federation.startQueue(undefined).catch((error) => journal.fail("queue", error));
  peer.context = () => federation.createContext(new URL(origin), undefined);
  peer.fetch = (request) =>
    federation.fetch(request, { contextData: undefined, onNotFound: (missed) => goneOrNotFound(missed, peer) });
  return peer;
}

// rsaKeyPair makes the same as generateCryptoKeyPair, but with a chosen length. Fedify always uses
// 4096 bits, which may take seconds.
function rsaKeyPair(modulusLength) {
  const algorithm = { name: "RSASSA-PKCS1-v1_5", modulusLength, publicExponent: new Uint8Array([1, 0, 1]), hash: "SHA-256" };
  return crypto.subtle.generateKey(algorithm, true, ["sign", "verify"]);
}

function serveActors(federation, { actors }) {
  federation
    .setActorDispatcher("/users/{identifier}", async (ctx, identifier) => {
      if (!actors.has(identifier)) return null;
      const keys = await ctx.getActorKeyPairs(identifier);
      return new Person({
        id: ctx.getActorUri(identifier),
        preferredUsername: identifier,
        name: identifier,
        inbox: ctx.getInboxUri(identifier),
        outbox: ctx.getOutboxUri(identifier),
        followers: ctx.getFollowersUri(identifier),
        following: ctx.getFollowingUri(identifier),
        endpoints: new Endpoints({ sharedInbox: ctx.getInboxUri() }),
        publicKey: keys[0].cryptographicKey,
        assertionMethods: keys.map((pair) => pair.multikey),
      });
    })
    .mapHandle((_, username) => (actors.has(username) ? username : null))
    .setKeyPairsDispatcher((_, identifier) => actors.get(identifier)?.keyPairs ?? []);
}

function serveCollections(federation, { actors }) {
  const page = (itemsOf) => (ctx, identifier, cursor) => {
    const actor = actors.get(identifier);
    if (!actor || cursor == null) return null; // without a cursor the collection has no items and links to its first page
    const from = Number(cursor);
    const items = itemsOf(actor);
    return {
      items: items.slice(from, from + PAGE_SIZE),
      nextCursor: from + PAGE_SIZE < items.length ? String(from + PAGE_SIZE) : null,
    };
  };
  const serve = (setter, itemsOf) =>
    setter(page(itemsOf))
      .setFirstCursor(() => "0")
      .setCounter((_, identifier) => (actors.has(identifier) ? itemsOf(actors.get(identifier)).length : null));

  serve((d) => federation.setOutboxDispatcher("/users/{identifier}/outbox", d), (actor) => actor.outbox());
  serve((d) => federation.setFollowersDispatcher("/users/{identifier}/followers", d), (actor) =>
    [...actor.followers.values()]);
  serve((d) => federation.setFollowingDispatcher("/users/{identifier}/following", d), (actor) =>
    [...actor.following].filter(([, { state }]) => state === "accepted").map(([id]) => new URL(id)));
}

function serveObjects(federation, { actors }) {
  const find = (type, from) => (ctx, { identifier, id }) => {
    const found = from(actors.get(identifier), ctx.getObjectUri(type, { identifier, id }).href);
    return found instanceof type ? found : null;
  };
  const note = find(Note, (actor, uri) => actor?.notes.get(uri));
  const activity = find(Activity, (actor, uri) => actor?.sent.get(uri)?.activity);
  const visible = (dispatch) => (ctx, values) => mayRead(ctx, actors.get(values.identifier), dispatch(ctx, values));
  federation.setObjectDispatcher(Note, "/users/{identifier}/notes/{id}", note).authorize(visible(note));
  federation.setObjectDispatcher(Activity, "/users/{identifier}/activities/{id}", activity).authorize(visible(activity));
}

// An object that is not public is served only to its addressed actors. A reader proves to be such
// an actor by signing the GET.
async function mayRead(ctx, author, object) {
  if (isPublic(object)) return true;
  const documentLoader = await ctx.getDocumentLoader({ identifier: author.name });
  const reader = (await ctx.getSignedKeyOwner({ documentLoader }))?.id?.href;
  if (!reader) return false;
  const audience = audienceOf(object);
  // Activities such as Follow and Like often have no addressing. The actors that they were sent to
  // may read them.
  const receivers = author.sent.get(object.id.href)?.recipients ?? [];
  return audience.includes(reader) || receivers.some((recipient) => recipient.id.href === reader) ||
    (audience.includes(ctx.getFollowersUri(author.name).href) && author.followers.has(reader));
}

function audienceOf(object) {
  return [...object.toIds, ...object.ccIds].map((id) => id.href);
}

function isPublic(object) {
  return audienceOf(object).includes(PUBLIC_COLLECTION.href);
}

async function goneOrNotFound(request, { actors, context }) {
  const uri = request.url.replace(/[?#].*/, "");
  for (const { notes } of actors.values()) {
    if (!notes.has(uri)) continue;
    const tombstone = await notes.get(uri).toJsonLd({ contextLoader: context().contextLoader });
    const headers = { "Content-Type": "application/activity+json" };
    return new Response(JSON.stringify(tombstone), { status: 410, headers });
  }
  return new Response("Not found.", { status: 404 });
}

// Errors that a listener throws get into Fedify's log, and thus into the journal.
function hear(federation, peer, journal) {
  const { actors } = peer;
  const record = async (ctx, activity) =>
    journal.receive({
      type: activity.constructor.name,
      id: activity.id?.href,
      actor: activity.actorId?.href,
      objectId: activity.objectId?.href,
      inbox: ctx.recipient ?? "shared",
      activity: await activity.toJsonLd({ contextLoader: ctx.contextLoader }),
    });
  // The effect comes before the record. So a test that waits for the record sees the effect.
  const on = (effect) => async (ctx, activity) => {
    try {
      await effect?.(ctx, activity);
    } finally {
      await record(ctx, activity);
    }
  };

  federation
    .setInboxListeners("/users/{identifier}/inbox", "/inbox")
    .setSharedKeyDispatcher(() => ({ identifier: actors.keys().next().value }))
    .on(Activity, on())
    .on(Follow, on((ctx, follow) => answerFollow(ctx, follow, peer)))
    .on(Accept, on((ctx, accept) => {
      const actor = whoAsked(actors, accept);
      actor.following.get(accept.actorId.href).state = "accepted";
    }))
    .on(Reject, on((ctx, reject) => {
      whoAsked(actors, reject).following.delete(reject.actorId.href);
    }))
    .on(Undo, on(async (ctx, undo) => {
      const undone = await undo.getObject(ctx);
      if (!(undone instanceof Follow)) return;
      if (undone.actorId?.href !== undo.actorId.href) throw new Error(`${undo.id} undoes the Follow of ${undone.actorId}`);
      actors.get(ctx.parseUri(undone.objectId)?.identifier)?.followers.delete(undo.actorId.href);
    }))
    .on(Move, on((ctx, move) => goAlong(ctx, move, peer)))
    .on(Delete, on((ctx, activity) => {
      if (activity.objectId?.href !== activity.actorId.href) return;
      for (const { followers, following } of actors.values()) {
        followers.delete(activity.actorId.href);
        following.delete(activity.actorId.href);
      }
    }));
}

async function answerFollow(ctx, follow, { actors, followAnswer }) {
  const followed = ctx.parseUri(follow.objectId);
  const actor = followed?.type === "actor" ? actors.get(followed.identifier) : undefined;
  if (!actor) throw new Error(`${follow.id} follows ${follow.objectId}, who is not here`);
  if (followAnswer === "none") return;
  const follower = await follow.getActor(ctx);
  if (!follower?.inboxId) throw new Error(`${follow.id}: the follower ${follow.actorId} cannot be read`);
  if (followAnswer === "accept") actor.followers.set(follower.id.href, follower);
  const Answer = followAnswer === "accept" ? Accept : Reject;
  const answer = new Answer({ id: newId(ctx, Activity, actor), actor: ctx.getActorUri(actor.name), object: follow });
  await send(ctx, actor, [follower], answer);
}

// goAlong follows an account to the place that it moved to. Both accounts are read again, and each
// must name the other.
async function goAlong(ctx, move, { actors }) {
  const from = move.actorId.href;
  if (move.objectId?.href !== from) throw new Error(`${move.id} of ${from} moves ${move.objectId}`);
  for (const actor of [...actors.values()].filter(({ following }) => following.has(from))) {
    const documentLoader = await ctx.getDocumentLoader({ identifier: actor.name });
    const [old, target] = await Promise.all([from, move.targetId].map((id) => ctx.lookupObject(id, { documentLoader })));
    if (!isActor(old) || !isActor(target)) throw new Error(`${move.id}: an account cannot be read`);
    if (old.successorId?.href !== target.id.href) throw new Error(`${from} does not say that it moved to ${target.id}`);
    if (!target.aliasIds.some(({ href }) => href === from)) throw new Error(`${target.id} does not say that it is also ${from}`);
    const { activity, recipients } = actor.sent.get(actor.following.get(from).follow);
    actor.following.delete(from);
    const me = ctx.getActorUri(actor.name);
    await send(ctx, actor, recipients, new Undo({ id: newId(ctx, Activity, actor), actor: me, object: activity, to: old.id }));
    const follow = new Follow({ id: newId(ctx, Activity, actor), actor: me, object: target.id, to: target.id });
    actor.following.set(target.id.href, { follow: follow.id.href, state: "pending" });
    await send(ctx, actor, [target], follow);
  }
}

async function send(ctx, actor, recipients, activity) {
  actor.sent.set(activity.id.href, { activity, recipients });
  await ctx.sendActivity({ identifier: actor.name }, recipients, activity, { orderingKey: actor.name });
}

// whoAsked finds the actor whose Follow is answered. The answer must name that Follow by its id,
// and must come from the followed actor.
function whoAsked(actors, answer) {
  for (const actor of actors.values()) {
    if (actor.following.get(answer.actorId.href)?.follow === answer.objectId?.href) return actor;
  }
  throw new Error(`${answer.id} of ${answer.actorId} answers ${answer.objectId}, which is no Follow of ours to them`);
}

export function newId(ctx, type, actor) {
  return ctx.getObjectUri(type, { identifier: actor.name, id: crypto.randomUUID() });
}
