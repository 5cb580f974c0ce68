// The JSON API for tests. By it a test makes the peer act, and reads how the peer understood
// documents. README.md lists the calls.

import {
  Activity,
  Announce,
  Collection,
  Create,
  Delete,
  Follow,
  isActor,
  Like,
  Mention,
  Note,
  PUBLIC_COLLECTION,
  Tombstone,
  Undo,
  Update,
} from "@fedify/vocab";
import { Temporal } from "@js-temporal/polyfill";
import { newId } from "./federation.mjs";

const ACTIVITY_STREAMS = /^application\/(activity\+json$|ld\+json;\s*profile="https:\/\/www\.w3\.org\/ns\/activitystreams")/;

class Refusal extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

// createControl answers requests below /control/.
export function createControl({ peer, journal }) {
  return async (request) => {
    const url = new URL(request.url);
    const name = url.pathname.slice("/control/".length);
    return journal.within(undefined, async (scene) => {
      const told = {};
      try {
        if (request.method === "GET") return await look(name, url.searchParams, peer, journal);
        const call = request.method === "POST" && Object.hasOwn(calls, name) ? calls[name] : undefined;
        if (!call) throw new Refusal(404, `no such call: ${request.method} ${url.pathname}`);
        const answer = await call(await prepare(await argumentsOf(request), { peer, told, scene }));
        return Response.json({ ...told, ...answer });
      } catch (error) {
        if (!(error instanceof Refusal)) journal.fail(`control ${name}`, error);
        return Response.json({ error: error.message, ...told, why: scene.why }, { status: error.status ?? 500 });
      }
    });
  };
}

async function argumentsOf(request) {
  try {
    return await request.json();
  } catch {
    throw new Refusal(400, "the body is not JSON");
  }
}

async function look(name, query, peer, journal) {
  const after = Number(query.get("after") ?? 0);
  switch (name) {
    case "log": {
      const actor = choose(peer, query.get("as"));
      return Response.json({
        received: journal.received.slice(after),
        errors: journal.errors,
        followers: [...actor.followers.keys()],
        following: [...actor.following].map(([id, { state, follow }]) => ({ id, state, follow })),
      });
    }
    case "requests":
      return Response.json({ requests: journal.requests.slice(after) });
    case "wait": {
      const { type, actor, object } = Object.fromEntries(query);
      const entry = await journal.wait({ type, actor, object, after });
      return entry ? Response.json(entry) : Response.json({ error: "nothing received in time" }, { status: 408 });
    }
  }
  throw new Refusal(404, `no such call: GET /control/${name}`);
}

function choose(peer, name) {
  const actor = name ? peer.actors.get(name) : peer.actors.values().next().value;
  if (!actor) throw new Refusal(400, `there is no actor ${name} here`);
  return actor;
}

// prepare returns the parts that a call works with. The answer of a call contains `told`, even if
// the call fails.
async function prepare(args, { peer, told, scene }) {
  const actor = choose(peer, args.as);
  const ctx = peer.context();
  const documentLoader = args.anonymous ? ctx.documentLoader : await ctx.getDocumentLoader({ identifier: actor.name });
  return { args, peer, ctx, actor, told, scene, documentLoader, me: ctx.getActorUri(actor.name) };
}

const calls = {
  async follow(call) {
    const { actor, me, args } = call;
    const target = await actorAt(call, args.actor);
    const follow = new Follow({ id: newId(call.ctx, Activity, actor), actor: me, object: target.id, to: target.id });
    actor.following.set(target.id.href, { follow: follow.id.href, state: "pending" });
    return deliver(call, follow, [target]);
  },

  async unfollow(call) {
    const entry = call.actor.following.get(call.args.actor);
    if (!entry) throw new Refusal(409, `${call.actor.name} does not follow ${call.args.actor}`);
    return undo(call, entry.follow);
  },

  async create(call) {
    const { actor, ctx, me, args } = call;
    const named = await Promise.all((args.to ?? []).map((uri) => actorAt(call, uri)));
    if (args.inReplyTo) named.push(await authorOf(call, args.inReplyTo));
    const addressed = unique(named);
    const ids = addressed.map(({ id }) => id);
    if (!args.public && ids.length === 0) throw new Refusal(400, "neither public nor to anyone");
    const note = new Note({
      id: newId(ctx, Note, actor),
      attribution: me,
      content: args.content,
      published: Temporal.Now.instant(),
      replyTarget: args.inReplyTo ? new URL(args.inReplyTo) : null,
      tags: addressed.map((mentioned) => new Mention({ href: mentioned.id, name: handleOf(mentioned) })),
      ...audience(call, ids),
    });
    actor.notes.set(note.id.href, note);
    call.told.object = note.id.href;
    return deliver(call, activityOn(call, Create, note, note), unique([...addressed, ...followersIf(call, args.public)]));
  },

  async like(call) {
    const author = await authorOf(call, call.args.object);
    const like = new Like({
      id: newId(call.ctx, Activity, call.actor),
      actor: call.me,
      object: new URL(call.args.object),
      to: author.id,
    });
    return deliver(call, like, [author]);
  },

  async announce(call) {
    const author = await authorOf(call, call.args.object);
    const announce = new Announce({
      id: newId(call.ctx, Activity, call.actor),
      actor: call.me,
      object: new URL(call.args.object),
      published: Temporal.Now.instant(),
      to: PUBLIC_COLLECTION,
      ccs: [call.ctx.getFollowersUri(call.actor.name), author.id],
    });
    return deliver(call, announce, unique([author, ...call.actor.followers.values()]));
  },

  async update(call) {
    const before = ownNote(call);
    const note = before.clone({ content: call.args.content, updated: Temporal.Now.instant() });
    call.actor.notes.set(note.id.href, note);
    return deliver(call, activityOn(call, Update, note, note), receiversOf(call, note.id.href));
  },

  async delete(call) {
    const note = ownNote(call);
    const tombstone = new Tombstone({ id: note.id, deleted: Temporal.Now.instant() });
    call.actor.notes.set(note.id.href, tombstone);
    return deliver(call, activityOn(call, Delete, tombstone, note), receiversOf(call, note.id.href));
  },

  undo: (call) => undo(call, call.args.activity),

  async follows({ peer, args }) {
    if (!["accept", "reject", "none"].includes(args.answer)) throw new Refusal(400, "answer: accept, reject or none");
    peer.followAnswer = args.answer;
  },

  async lookup(call) {
    const object = await objectAt(call, call.args.resource);
    return { type: object.constructor.name, id: object.id?.href, object: await understood(call, object) };
  },

  async traverse(call) {
    const collection = await objectAt(call, call.args.collection);
    if (!(collection instanceof Collection)) throw new Refusal(422, `${call.args.collection} is no collection`);
    const items = [];
    const { documentLoader } = call;
    try {
      for await (const item of call.ctx.traverseCollection(collection, { documentLoader })) {
        items.push({ type: item.constructor.name, id: item.id?.href, object: await understood(call, item) });
      }
    } catch (error) {
      throw new Refusal(422, `Fedify cannot read item ${items.length + 1} of ${call.args.collection}: ${error.message}`);
    }
    return { type: collection.constructor.name, totalItems: collection.totalItems, items };
  },

  async webfinger({ ctx, args }) {
    if (args.origin) return rawWebFinger(args.origin, args.resource);
    const jrd = await ctx.lookupWebFinger(args.resource);
    if (!jrd) throw new Refusal(422, `Fedify finds no WebFinger resource ${args.resource}`);
    return { jrd, problems: problemsOf(jrd) };
  },
};

async function undo(call, id) {
  const done = call.actor.sent.get(id);
  if (!done) throw new Refusal(404, `${call.actor.name} did not do ${id}`);
  const { activity, recipients } = done;
  if (activity instanceof Follow) call.actor.following.delete(activity.objectId.href);
  const { toIds: tos, ccIds: ccs } = activity;
  const undone = new Undo({ id: newId(call.ctx, Activity, call.actor), actor: call.me, object: activity, tos, ccs });
  return deliver(call, undone, recipients);
}

// deliver waits until every inbox has answered. With "queued" it does not wait, and Fedify retries
// failed deliveries a few times.
async function deliver(call, activity, recipients) {
  const { actor, args, ctx, told, scene } = call;
  told.id = activity.id.href;
  actor.sent.set(activity.id.href, { activity, recipients });
  try {
    await ctx.sendActivity({ identifier: actor.name }, recipients, activity, {
      immediate: !args.queued,
      fanout: "skip",
      orderingKey: actor.name,
      preferSharedInbox: args.sharedInbox === true,
    });
  } catch (error) {
    throw new Refusal(502, error.message);
  } finally {
    told.deliveries = scene.sent.filter(({ method }) => method === "POST")
      .map(({ url, signature, status, error }) => ({ inbox: url, signature, status, error }));
  }
}

function activityOn({ ctx, actor, me }, Type, object, addressed) {
  const { toIds: tos, ccIds: ccs } = addressed;
  return new Type({ id: newId(ctx, Activity, actor), actor: me, object, tos, ccs });
}

function audience({ args, ctx, actor }, ids) {
  if (!args.public) return { tos: ids };
  return { tos: [PUBLIC_COLLECTION], ccs: [ctx.getFollowersUri(actor.name), ...ids] };
}

function followersIf({ actor }, isPublic) {
  return isPublic ? [...actor.followers.values()] : [];
}

function ownNote({ actor, args }) {
  const note = actor.notes.get(args.object);
  if (!(note instanceof Note)) throw new Refusal(404, `${actor.name} has no note ${args.object}`);
  return note;
}

// receiversOf returns the actors that the Create of a note was sent to.
function receiversOf({ actor }, noteId) {
  const creates = [...actor.sent.values()].filter(({ activity }) => activity instanceof Create);
  return creates.find(({ activity }) => activity.objectId.href === noteId).recipients;
}

async function authorOf(call, uri) {
  const object = await objectAt(call, uri);
  if (!object.attributionId) throw new Refusal(422, `${uri} is attributed to nobody`);
  return actorAt(call, object.attributionId.href);
}

async function actorAt(call, uri) {
  const actor = await objectAt(call, uri);
  if (!isActor(actor) || !actor.id || !actor.inboxId) throw new Refusal(422, `${uri} is no actor with an inbox`);
  return actor;
}

async function objectAt({ ctx, documentLoader }, uri) {
  if (typeof uri !== "string" || uri === "") throw new Refusal(400, "the URI is missing");
  const object = await ctx.lookupObject(uri, { documentLoader }).catch((error) => {
    throw new Refusal(422, `Fedify cannot read ${uri}: ${error.message}`);
  });
  if (!object) throw new Refusal(422, `Fedify finds no object at ${uri}`);
  return object;
}

// understood writes the object again from its parsed values. Without `format`, Fedify would return
// the document that it read.
function understood({ ctx }, object) {
  return object.toJsonLd({ format: "compact", contextLoader: ctx.contextLoader });
}

async function rawWebFinger(origin, resource) {
  const url = new URL("/.well-known/webfinger", origin);
  url.searchParams.set("resource", resource);
  const response = await fetch(url, { headers: { accept: "application/jrd+json" }, redirect: "manual" });
  const contentType = response.headers.get("content-type");
  const text = await response.text();
  let jrd = null;
  try {
    jrd = JSON.parse(text);
  } catch {
    return { status: response.status, contentType, jrd, problems: ["the body is not JSON"] };
  }
  const problems = problemsOf(jrd);
  if (response.status !== 200) problems.push(`status ${response.status}`);
  if (!/^application\/jrd\+json(;|$)/.test(contentType ?? "")) problems.push(`content type ${contentType}`);
  return { status: response.status, contentType, jrd, problems };
}

// problemsOf checks the shape that RFC 7033, section 4.4, requires, and the link that Fedify
// needs.
function problemsOf(jrd) {
  const isURI = (value) => typeof value === "string" && URL.canParse(value);
  const problems = [];
  if (!isURI(jrd?.subject)) problems.push("subject is no URI");
  if (jrd?.aliases !== undefined && !isArrayOf(jrd.aliases, isURI)) problems.push("aliases is no array of URIs");
  if (!isArrayOf(jrd?.links, (link) => isURI(link?.rel) || /^[a-z][a-z0-9.-]*$/.test(link?.rel))) {
    return [...problems, "links is no array of links with a rel each"];
  }
  const self = jrd.links.filter(({ rel, type }) => rel === "self" && ACTIVITY_STREAMS.test(type ?? ""));
  if (self.length === 0) problems.push("no link to self as ActivityStreams");
  else if (!isURI(self[0].href)) problems.push("the link to self has no URI");
  else if (self.some(({ href }) => href !== self[0].href)) problems.push("the links to self name several URIs");
  return problems;
}

function isArrayOf(value, holds) {
  return Array.isArray(value) && value.every((item) => holds(item));
}

function unique(actors) {
  return [...new Map(actors.map((actor) => [actor.id.href, actor])).values()];
}

function handleOf(actor) {
  return `@${actor.preferredUsername}@${actor.id.host}`;
}
