// The record of the peer: received activities, requests in both directions, and errors. Tests read
// it, and wait for its entries.

import { AsyncLocalStorage } from "node:async_hooks";
import { inspect } from "node:util";
import { configure } from "@logtape/logtape";

const WAIT_MS = 20_000;

// Fedify accepts one of three proofs of authorship, and says only in its log which one. It tries
// them in this order.
const PROOFS = {
  "Linked Data Signatures are verified.": "ld-signature",
  "Object Integrity Proofs are verified.": "object-proof",
  "HTTP Signatures are verified.": "http-signature",
};

// Matches the log messages that say why a document, key or signature was not accepted. Most of
// them are debug messages in Fedify.
const REASON = /^(Failed to (verify|fetch|parse|normalize)|The (signer|actor|owner|document|object's)\b)|refusing/;

export class Journal {
  received = [];
  requests = [];
  errors = [];
  #arrivals = new Map();
  #waiting = new Set();
  #scene = new AsyncLocalStorage();
  #print;
  #debug;

  constructor({ print, debug }) {
    this.#print = print;
    this.#debug = debug;
  }

  // attach makes Fedify's log part of this journal.
  attach() {
    return configure({
      sinks: { journal: (record) => this.#hear(record) },
      loggers: [
        { category: "fedify", lowestLevel: "debug", sinks: ["journal"] },
        { category: ["logtape", "meta"], lowestLevel: "error", sinks: ["journal"] },
      ],
    });
  }

  // within runs the work of one request or of one control call. It passes a scene to run(). The
  // scene collects the requests that are made meanwhile, and the reasons that are logged
  // meanwhile.
  within(request, run) {
    const scene = { request, sent: [], why: [] };
    return this.#scene.run(scene, run, scene);
  }

  begin(request) {
    const entry = { seq: this.requests.length + 1, at: new Date().toISOString(), ...request };
    const scene = this.#scene.getStore();
    if (scene?.request) entry.during = scene.request.seq;
    scene?.sent.push(entry);
    this.requests.push(entry);
    return entry;
  }

  // arrived stores which request brought an activity. receive uses it.
  arrived(activityId, request) {
    this.#arrivals.set(activityId, request);
  }

  receive(activity) {
    const request = this.#arrivals.get(activity.id);
    const entry = {
      seq: this.received.length + 1,
      at: new Date().toISOString(),
      ...activity,
      signature: request?.signature,
      verified: request?.verified,
      request: request?.seq,
    };
    this.received.push(entry);
    for (const waiter of this.#waiting) waiter(entry);
  }

  // wait resolves to the first matching activity with a number above `after`, or to null after 20
  // s.
  wait({ type, actor, object, after = 0 }) {
    const matches = (entry) =>
      entry.seq > after && (!type || entry.type === type) && (!actor || entry.actor === actor) &&
      (!object || entry.objectId === object);
    const seen = this.received.find(matches);
    if (seen) return Promise.resolve(seen);
    return new Promise((resolve) => {
      const finish = (entry) => {
        clearTimeout(timer);
        this.#waiting.delete(waiter);
        resolve(entry);
      };
      const waiter = (entry) => matches(entry) && finish(entry);
      const timer = setTimeout(finish, WAIT_MS, null);
      this.#waiting.add(waiter);
    });
  }

  fail(what, error) {
    this.#note("error", `${what}: ${error instanceof Error ? error.stack : inspect(error)}`);
  }

  #note(level, message) {
    const at = new Date().toISOString();
    if (level === "error") this.errors.push({ at, message });
    this.#print(`${at} ${level} ${message}`);
  }

  #hear({ category, level, rawMessage, message }) {
    const scene = this.#scene.getStore();
    if (scene?.request && PROOFS[rawMessage]) scene.request.verified ??= PROOFS[rawMessage];
    const loud = level === "error" || level === "fatal" || level === "warning";
    const reason = scene && REASON.test(rawMessage);
    if (!loud && !reason && !this.#debug) return;
    const text = `${category.join(".")}: ${message.map(render).join("")}`;
    if (reason) scene.why.push(text);
    if (loud || this.#debug) this.#note(level === "fatal" ? "error" : level, text);
  }
}

function render(part) {
  if (typeof part === "string") return part;
  if (part instanceof URL) return part.href;
  if (part instanceof Error) return `${part.name}: ${part.message}`;
  return inspect(part, { depth: 3, breakLength: Infinity, maxStringLength: 500 });
}
