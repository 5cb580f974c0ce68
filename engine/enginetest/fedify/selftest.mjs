// Two peers federate with each other, once with each dialect as the first to sign with. Run it
// with: node selftest.mjs

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { execPath } from "node:process";
import { createInterface } from "node:readline";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const CAVAGE = "draft-cavage-http-signatures-12";

async function start(t, env) {
  const child = spawn(execPath, [fileURLToPath(new URL("peer.mjs", import.meta.url))], {
    env: { ...process.env, PORT: "0", EXIT_WITH_STDIN: "1", ...env },
    stdio: ["pipe", "pipe", "pipe"],
  });
  t.after(async () => {
    child.kill();
    if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
  });
  let complaints = "";
  child.stderr.on("data", (data) => (complaints += data));
  const [line] = await Promise.race([
    once(createInterface(child.stdout), "line"),
    once(child, "exit").then(() => assert.fail(`the peer did not start:\n${complaints}`)),
  ]);
  const { origin } = JSON.parse(line);
  const get = async (call) => (await fetch(`${origin}/control/${call}`)).json();
  const post = async (call, args, status = 200) => {
    const response = await fetch(`${origin}/control/${call}`, { method: "POST", body: JSON.stringify(args) });
    const answer = await response.json();
    assert.equal(response.status, status, `${call}: ${JSON.stringify(answer, null, 2)}\n${complaints}`);
    return answer;
  };
  return { origin, get, post, seen: 0, complaints: () => complaints };
}

// expect waits for the next activity. It fails if the activity has another type, for example
// because one activity came twice.
async function expect(peer, type) {
  const entry = await peer.get(`wait?type=${type}&after=${peer.seen}`);
  assert.equal(entry.type, type, `waiting for ${type}: ${JSON.stringify(entry)}\n${peer.complaints()}`);
  assert.equal(entry.seq, peer.seen + 1, "an activity came in between");
  peer.seen = entry.seq;
  return entry;
}

for (const first of ["rfc9421", CAVAGE]) {
  test(`two peers that sign by ${first} first`, async (t) => {
    const [home, away] = await Promise.all([
      start(t, { FIRST_KNOCK: first, ACTORS: "bob" }),
      start(t, { FIRST_KNOCK: first, ACTORS: "alice,carol" }),
    ]);
    const bob = `${home.origin}/users/bob`;
    const alice = `${away.origin}/users/alice`;
    const carol = `${away.origin}/users/carol`;
    const posts = [];

    await t.test("a follow is accepted", async () => {
      const follow = await away.post("follow", { actor: bob });
      assert.deepEqual(follow.deliveries, [{ inbox: `${bob}/inbox`, signature: first, status: 202 }]);
      const received = await expect(home, "Follow");
      assert.equal(received.id, follow.id);
      assert.equal(received.actor, alice);
      assert.equal(received.objectId, bob);
      assert.equal(received.signature, first);
      assert.equal(received.verified, "ld-signature");
      const accept = await expect(away, "Accept");
      assert.equal(accept.objectId, follow.id);
      assert.deepEqual((await home.get("log")).followers, [alice]);
      assert.deepEqual((await away.get("log")).following, [{ id: bob, state: "accepted", follow: follow.id }]);
    });

    await t.test("a public post reaches the follower", async () => {
      for (const content of ["one", "two", "three", "four"]) {
        posts.push(await home.post("create", { content, public: true }));
      }
      for (const post of posts) {
        const create = await expect(away, "Create");
        assert.equal(create.id, post.id);
        assert.equal(create.objectId, post.object);
      }
      const note = await away.post("lookup", { resource: posts[0].object });
      assert.equal(note.type, "Note");
      assert.equal(note.object.content, "one");
    });

    await t.test("a direct post is shown to its addressee only", async () => {
      const post = await home.post("create", { content: "between us", to: [alice] });
      assert.equal((await expect(away, "Create")).id, post.id);
      assert.equal((await away.post("lookup", { resource: post.object })).object.content, "between us");
      await away.post("lookup", { resource: post.object, as: "carol" }, 422);
      await away.post("lookup", { resource: post.object, anonymous: true }, 422);
      const statuses = (await home.get("requests")).requests.filter((r) => r.direction === "in" && r.url === post.object)
        .map(({ signature, status }) => [signature, status]);
      const second = first === CAVAGE ? "rfc9421" : CAVAGE;
      assert.deepEqual(statuses, [[first, 200], [first, 401], [second, 401], ["none", 401]]);
    });

    await t.test("a reply, a like and an announce reach the author", async () => {
      const reply = await away.post("create", { content: "yes", to: [bob], inReplyTo: posts[0].object });
      assert.equal((await expect(home, "Create")).activity.object.inReplyTo, posts[0].object);
      const like = await away.post("like", { object: posts[1].object });
      assert.equal((await expect(home, "Like")).objectId, posts[1].object);
      const announce = await away.post("announce", { object: posts[2].object });
      assert.equal((await expect(home, "Announce")).objectId, posts[2].object);
      for (const { id, deliveries } of [reply, like, announce]) assert.equal(deliveries.length, 1, id);

      await away.post("undo", { activity: like.id });
      assert.equal((await expect(home, "Undo")).objectId, like.id);
    });

    await t.test("an update and a delete follow the post", async () => {
      await home.post("update", { object: posts[0].object, content: "one, corrected" });
      assert.equal((await expect(away, "Update")).activity.object.content, "one, corrected");
      assert.equal((await away.post("lookup", { resource: posts[0].object })).object.content, "one, corrected");

      await home.post("delete", { object: posts[3].object });
      const received = await expect(away, "Delete");
      assert.equal(received.objectId, posts[3].object);
      const response = await fetch(posts[3].object, { headers: { accept: "application/activity+json" } });
      assert.equal(response.status, 410);
      assert.equal((await response.json()).type, "Tombstone");
    });

    await t.test("collections are read page by page", async () => {
      await home.post("create", { content: "five", public: true });
      await expect(away, "Create");
      const outbox = await away.post("traverse", { collection: `${bob}/outbox` });
      assert.equal(outbox.totalItems, 4);
      assert.deepEqual(outbox.items.map(({ type }) => type), ["Create", "Create", "Create", "Create"]);
      assert.equal(outbox.items.at(-1).id, posts[0].id);
      const pages = (await home.get("requests")).requests.filter(({ path }) => path.startsWith("/users/bob/outbox?cursor="));
      assert.equal(pages.length, 2);
      const followers = await away.post("traverse", { collection: `${bob}/followers` });
      assert.deepEqual(followers.items.map(({ id }) => id), [alice]);
    });

    await t.test("actors are found by handle", async () => {
      const host = new URL(home.origin).host;
      const found = await away.post("lookup", { resource: `@bob@${host}` });
      assert.equal(found.id, bob);
      assert.equal(found.type, "Person");
      assert.equal(found.object.assertionMethod.length, 2);
      const byHandle = await away.post("webfinger", { resource: `acct:bob@${host}`, origin: home.origin });
      assert.deepEqual(byHandle.problems, []);
      assert.deepEqual((await away.post("webfinger", { resource: bob })).problems, []);
      assert.equal((await away.post("webfinger", { resource: `acct:none@${host}`, origin: home.origin })).status, 404);
    });

    await t.test("a queued post arrives as well", async () => {
      const { deliveries, id } = await home.post("create", { content: "six", public: true, queued: true });
      assert.deepEqual(deliveries, []);
      assert.equal((await expect(away, "Create")).id, id);
    });

    await t.test("an unfollow removes the follower, and a follow may be rejected", async () => {
      await away.post("unfollow", { actor: bob });
      await expect(home, "Undo");
      assert.deepEqual((await home.get("log")).followers, []);

      await home.post("follows", { answer: "reject" });
      await away.post("follow", { actor: bob, as: "carol" });
      assert.equal((await expect(home, "Follow")).actor, carol);
      assert.equal((await expect(away, "Reject")).actor, bob);
      assert.deepEqual((await away.get("log?as=carol")).following, []);
    });

    await t.test("an unsigned activity is refused, with the reason on record", async () => {
      const response = await fetch(`${bob}/inbox`, {
        method: "POST",
        headers: { "content-type": "application/activity+json" },
        body: JSON.stringify({
          "@context": "https://www.w3.org/ns/activitystreams",
          id: `${alice}/activities/forged`,
          type: "Like",
          actor: alice,
          object: bob,
        }),
      });
      assert.equal(response.status, 401);
      const { requests } = await home.get("requests");
      assert.equal(requests.at(-1).status, 401);
      assert.ok(requests.at(-1).why.length > 0);
    });

    await t.test("nothing else went wrong", async () => {
      const expected = /Failed to verify the request's HTTP Signatures|Failed to fetch document: 4|Actor none not found/;
      for (const peer of [home, away]) {
        const { errors } = await peer.get("log");
        assert.deepEqual(errors.filter(({ message }) => !expected.test(message)), []);
      }
    });
  });
}
