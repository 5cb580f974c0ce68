// A device of the user: this browser. Its keys and groups lie in the browser's IndexedDB. Whatever
// changes them holds a lock that the tabs of one user share, and reads them anew: so no tab forks
// the state that another one has moved on.

import { isRefused, read, request } from "./api.js"
import { Group, newGroup } from "./group.js"
import * as mls from "./mls.js"
import { openStore } from "./store.js"

const fewPackages = 5, enoughPackages = 10 // for one claim each
const day = 86400_000, pauseAfterRefusal = 3600_000
const lifetime = { once: 30, lastResort: 80 } // days
const replaceAfter = 7 // days, for which one of last resort is shown to everybody
// For as many days a server keeps a Welcome: one for a package that is replaced may be on its way.
const keepAfter = 30

export async function openDevice(actor) {
  const store = await openStore(actor)
  const device = new Device(store, actor)
  await device.introduce()
  return device
}

class Device {
  #store; #actor; #self
  #publishAfter = 0 // when key packages are published again, after a refusal
  #again = new Map() // Welcomes that are to be tried again: the server hands one out every ten minutes

  constructor(store, actor) {
    this.#store = store
    this.#actor = actor
  }

  #alone(work) { return navigator.locks.request(`lightweb ${this.#actor}`, work) }

  /** Makes the device, unless this browser has one of the user's. */
  introduce() {
    return this.#alone(async () => {
      this.#self = await this.#store.find("device", "self")
      if (this.#self) return
      this.#self = { name: "self", id: crypto.randomUUID(), key: await mls.makeKey() }
      await this.#store.write({ device: [this.#self] })
    })
  }

  /** Does all that others wait for: key packages, Welcomes, and the logs of the conversations. */
  sync() {
    return this.#alone(async () => {
      let failed
      const attempt = (work) => work.catch((failure) => { failed ??= failure })
      for (const kept of await this.#store.list("groups")) {
        if (kept.resets) await attempt(this.#finishReset(kept).catch((failure) => { if (!isRefused(failure)) throw failure }))
      }
      await this.#joinGroups()
      await attempt(this.#publishPackages()) // a Welcome may have used the one of last resort
      for (const c of await this.list()) {
        if (c.group && !c.group.conversation && !c.group.resets) await attempt(this.#adopt(c.group, c.id))
        if (c.group?.conversation && !c.group.resets) await attempt(this.#in(c.id, c.group).catchUp())
      }
      if (failed) throw failed
    })
  }

  #in(conversation, kept) { return new Group(this.#store, this.#actor, conversation, kept) }

  /** The user's encrypted conversations, the newest first, each with the device's group and all its devices. */
  async list() {
    const all = []
    for (let cursor = ""; cursor !== undefined;) {
      const page = await read("/api/conversations", cursor && { cursor })
      for (const c of page.items) if (c.mode === "encrypted") all.push(await this.#withGroup(c))
      cursor = page.next
    }
    return all
  }

  /** A conversation, with the device's group and all its devices. Who was removed sees what is here. */
  async find(id) {
    try {
      return await this.#withGroup(await read(`/api/conversations/${encodeURIComponent(id)}`))
    } catch (failure) {
      const listed = failure.code === "not_member" && (await this.list()).find((c) => c.id === id)
      if (listed) return { ...listed, members: [] }
      throw failure
    }
  }

  async #withGroup(c) {
    const group = await this.#store.find("groups", c.groupId ?? "")
    return { ...c, group, devices: group ? mls.membersOf(group.state) : [] }
  }

  messagesOf(group, after) { return this.#store.messagesOf(group, after) }

  /** Begins a conversation with an actor, and returns its id. One that was interrupted before the actor was in goes on. */
  begin(actor) {
    return this.#alone(async () => {
      const packages = [...await this.#claim(actor), ...await this.#claimOwn()]
      const isBegun = ({ begins, lost, state }) => begins === actor && !lost && mls.actorsOf(state).length === 1
      const kept = (await this.#store.list("groups")).find(isBegun) ?? await this.#beginFirst(actor)
      kept.conversation ||= await this.#makeConversation(kept)
      await addAll(this.#in(kept.conversation, kept), packages)
      delete kept.begins
      delete kept.groupInfo
      await this.#store.write({ groups: [kept] })
      return kept.conversation
    })
  }

  /** Makes the group of a new conversation with an actor. The record says so until the actor is in, since any answer may be lost. */
  async #beginFirst(actor) {
    const { kept, groupInfo } = await this.#makeGroup(`urn:uuid:${crypto.randomUUID()}`)
    Object.assign(kept, { begins: actor, groupInfo })
    await this.#store.write({ groups: [kept] })
    return kept
  }

  /** Lets the server make the conversation of a group, unless it has done so before; returns its id. */
  async #makeConversation({ id, groupInfo }) {
    try {
      return (await request("POST", "/api/conversations", { groupInfo })).id
    } catch (failure) {
      const made = failure.code === "group_taken" && (await this.list()).find(({ groupId }) => groupId === id)
      if (made) return made.id
      if (isRefused(failure)) await this.#store.write({}, { groups: [id] })
      throw failure
    }
  }

  /** Begins the next group of a conversation, when it is reset, and lets all members in anew. */
  reset(id) {
    return this.#alone(async () => {
      const { status, resetGroupId } = await this.find(id)
      const next = status === "reset_pending" ? resetGroupId : (await request("POST", resetPath(id), {})).groupId
      const had = await this.#store.find("groups", next) // from when the answer was lost
      if (had?.resets) return this.#finishReset(had)
      const { kept, groupInfo } = await this.#makeGroup(next)
      Object.assign(kept, { resets: id, groupInfo })
      await this.#store.write({ groups: [kept] })
      return this.#finishReset(kept)
    })
  }

  /** Does what is left of a reset. The record says so until all is done, since any answer may be lost. */
  async #finishReset(kept) {
    const id = kept.resets
    if (!kept.conversation) await this.#beginNext(kept, id)
    const group = this.#in(id, kept)
    await group.settle()
    const { members } = await this.find(id), there = mls.actorsOf(kept.state)
    const absent = members.map(({ actor }) => actor).filter((actor) => !there.includes(actor))
    const claims = await Promise.allSettled(absent.map((actor) => this.#claim(actor)))
    if (claims.length && claims.every(({ reason }) => reason instanceof TypeError)) throw claims[0].reason // the server cannot be reached
    const packages = [...await this.#claimOwn(), ...claims.flatMap(({ value }) => value ?? [])]
    const refusal = await addAll(group, packages).catch((failure) => failure)
    if (refusal && !isRefused(refusal)) throw refusal
    delete kept.resets
    delete kept.groupInfo
    await this.#store.write({ groups: [kept] })
    await group.catchUp() // what waits goes to all, not to this device alone
    if (refusal) throw refusal
  }

  /** Begins the next group of a conversation with a group of this device: the same again is answered as before. */
  async #beginNext(kept, id) {
    try {
      await request("POST", resetPath(id), { groupInfo: kept.groupInfo })
    } catch (failure) { // another member was first: its Welcome will come
      if (isRefused(failure)) await this.#store.write({}, { groups: [kept.id] })
      throw failure
    }
    await this.#keepNext(kept, id)
  }

  /** Notes which conversation a group is of. If the answer to a reset was lost, that is finished: its record has no groupInfo. */
  async #adopt(kept, id) {
    const hasFormer = (await this.#store.list("groups")).some(({ conversation }) => conversation === id)
    if (hasFormer) kept.resets = id
    await this.#keepNext(kept, id)
    if (hasFormer) await this.#finishReset(kept)
  }

  async #makeGroup(id) {
    const { state, groupInfo } = await mls.beginGroup(id, await mls.makePackage(this.#actor, this.#self.key, 1))
    return { kept: newGroup(id, state), groupInfo }
  }

  /** Keeps the group that a conversation goes on in, with what was said and still waits in the one before. */
  async #keepNext(kept, conversation, used = []) {
    const before = (await this.#store.list("groups")).filter((group) => group.conversation === conversation && group.id !== kept.id)
    for (const group of before) await this.#in(conversation, group).readLog() // its keys are deleted here
    const said = (await Promise.all(before.map(({ id }) => this.#store.messagesOf(id, 0)))).flat()
    // What the server took and the log did not show: a group that is lost reads on no more.
    said.push(...before.flatMap(({ id, sent }) => sent.filter(({ seq }) => seq).map(({ seq, at, text }) => ({ group: id, seq, at, sender: this.#actor, text }))))
    Object.assign(kept, { conversation, read: Math.max(kept.read, ...before.map(({ last = 0 }) => last)) })
    // The server says that this group is the next one: what waits is not for those whom the user did not write to.
    const waiting = before.flatMap(({ state, sent }) => sent.filter(({ seq }) => !seq).map(({ text, at, id = crypto.randomUUID(), to = mls.actorsOf(state), isHeld, mayBeSent }) => ({ text, at, id, to, isHeld, mayBeSent: isHeld && mayBeSent })))
    kept.sent = [...waiting, ...kept.sent]
    await this.#store.write({ groups: [kept], messages: said.map((entry) => ({ ...entry, group: kept.id })) },
      { groups: before.map(({ id }) => id), messages: said.map(({ group, seq }) => [group, seq]), packages: used })
  }

  add(id, actor) { return this.#inTurn(id, async (group) => addAll(group, await this.#claim(actor))) }

  remove(id, actor) {
    return this.#inTurn(id, (group) => group.change((members) => ({ remove: members.filter((m) => m.actor === actor).map(({ leaf }) => leaf) })))
  }

  /** Sends a message that is held, or drops it. */
  decide(id, message, isSent) { return this.#inTurn(id, (group) => group.decide(message, isSent)) }

  say(id, text) { return this.#inTurn(id, (group) => group.say(text)) }

  #inTurn(id, work) {
    return this.#alone(async () => {
      const { group } = await this.find(id)
      if (!group) throw new Error("This browser has no keys of this conversation.")
      if (group.resets) await this.#finishReset(group)
      return work(this.#in(id, group))
    })
  }

  /** A key package of each device of an actor. The server could lie: only the actor's own are taken. */
  async #claim(actor) {
    const { items } = await request("POST", "/api/keypackages/claim", { actor })
    const packages = items.map(({ content }) => ({ content, ...mls.readPackage(content) })).filter((p) => p.actor === actor && p.isReadable)
    if (!packages.length) throw new Error("None of their devices can be added.")
    return packages
  }

  /** Those of the user's other devices, if there are any. */
  async #claimOwn() {
    const own = await this.#claim(this.#actor).catch(() => [])
    return own.filter(({ key }) => key !== this.#self.key.publicKey.toHex())
  }

  async #publishPackages() {
    if (Date.now() < this.#publishAfter) return
    const own = (await read("/api/keypackages")).items.filter(({ deviceId }) => deviceId === this.#self.id)
    const current = own.filter(({ lastResort }) => lastResort), left = own.length - current.length
    const kept = await this.#sortOut(current)
    const wanted = left < fewPackages ? Array(enoughPackages - left).fill(false) : []
    if (!current.some(({ ref, notAfter }) => isFresh(notAfter) && kept.some((pack) => pack.ref === ref && !pack.isUsed))) wanted.push(true)
    if (!wanted.length) return
    const made = await Promise.all(wanted.map(async (lastResort) =>
      ({ ...await mls.makePackage(this.#actor, this.#self.key, lastResort ? lifetime.lastResort : lifetime.once), lastResort })))
    await this.#store.write({ packages: made })
    // The server shows one of last resort of each device: the new one takes the place of the one before.
    try {
      await request("POST", "/api/keypackages", { keyPackages: made.map(({ content, lastResort }) => ({ deviceId: this.#self.id, content, lastResort })) })
    } catch (failure) { // a user has 100 at most: one who has many browsers has no place for more
      if (!isRefused(failure)) throw failure
      this.#publishAfter = Date.now() + pauseAfterRefusal
      await this.#store.write({}, { packages: made.map(({ ref }) => ref) })
      throw failure
    }
  }

  /** Forgets the key packages for which no Welcome can come any more, and returns the others. */
  async #sortOut(current) {
    const now = Date.now(), isOver = ({ notAfter, replaced }) => Math.min(notAfter, replaced ?? Infinity) < now - day * keepAfter
    const all = await this.#store.list("packages")
    const replaced = all.filter((pack) => pack.lastResort && !pack.replaced && !current.some(({ ref }) => ref === pack.ref))
    for (const pack of replaced) pack.replaced = now
    const over = all.filter(isOver)
    if (replaced.length || over.length) await this.#store.write({ packages: replaced }, { packages: over.map(({ ref }) => ref) })
    return all.filter((pack) => !isOver(pack))
  }

  /** Joins the groups that Welcomes let the device into: the server hands out a few at a time, and none twice. */
  async #joinGroups() {
    let tried = [...this.#again.values()]
    const known = new Set()
    this.#again.clear()
    do {
      tried.forEach(({ id }) => known.add(id))
      for (const welcome of tried) {
        const isDone = await this.#join(welcome).catch(() => { this.#again.set(welcome.id, welcome) })
        if (isDone) await request("POST", `/api/welcomes/${welcome.id}/confirm`).catch(() => {}) // it is handed out again
      }
      tried = (await read("/api/welcomes", { device: this.#self.id })).items.filter(({ id }) => !known.has(id))
    } while (tried.length)
  }

  /** Joins by one Welcome, and returns whether the device is in its group then. */
  async #join({ conversationId, welcome }) {
    const pack = await this.#findPackage(welcome)
    if (pack?.lastResort && !pack.isUsed) await this.#store.write({ packages: [{ ...pack, isUsed: true }] })
    if (!conversationId) return false // a group that nobody puts in order is not for this client
    const { groupId } = await this.find(conversationId)
    const had = await this.#store.find("groups", groupId)
    if (had?.resets) throw new Error("it is not known yet who has begun the group")
    if (had && !had.lost) return true // it has joined, or is not to be led out of its own group
    if (!pack) return false
    const { id, state } = await mls.join(welcome, pack)
    if (id !== groupId) return false
    await this.#keepNext({ ...newGroup(id, state), read: had?.read ?? 0 }, conversationId, pack.lastResort ? [] : [pack.ref])
    return true
  }

  /** The key package of this device that a Welcome is for, with its private keys. */
  async #findPackage(welcome) {
    for (const ref of mls.packagesOf(welcome)) {
      const pack = await this.#store.find("packages", ref)
      if (pack) return pack
    }
  }
}

const resetPath = (id) => `/api/conversations/${encodeURIComponent(id)}/reset`
const isFresh = (notAfter) => Date.parse(notAfter) > Date.now() + day * (lifetime.lastResort - replaceAfter)

/** Adds devices by one commit, or each by its own when the server refuses the package of one. */
async function addAll(group, packages) {
  try {
    await group.change(addTo(packages))
  } catch (failure) {
    if (!isRefused(failure)) throw failure
    let added = 0
    for (const one of packages) await group.change(addTo([one])).then(() => added++, (again) => { if (!isRefused(again)) throw again })
    if (!added) throw failure
  }
}

/** Chooses the packages of devices that are not in a group yet. */
const addTo = (packages) => (members) => ({ add: packages.filter(({ key }) => !members.some((m) => m.key === key)).map(({ content }) => content) })
