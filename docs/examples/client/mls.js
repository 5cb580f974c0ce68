// MLS (RFC 9420) by ts-mls: what a device does with its keys and with the state of a group, which
// goes in and out as bytes. Nothing is kept here, and nobody is asked.

import * as mls from "ts-mls"
import { defaultClientConfig } from "ts-mls/clientConfig.js"
import { createGroupInfoWithRatchetTree } from "ts-mls/createCommit.js"
import { decodeKeyPackage, encodeKeyPackage, makeKeyPackageRef } from "ts-mls/keyPackage.js"
import { decryptSenderData } from "ts-mls/privateMessage.js"

const suite = await mls.getCiphersuiteImpl(mls.getCiphersuiteFromName("MLS_128_DHKEMX25519_AES128GCM_SHA256_Ed25519"))
// The server takes messages of the five epochs before the present one.
const config = { ...defaultClientConfig, keyRetentionConfig: { ...defaultClientConfig.keyRetentionConfig, retainKeysForEpochs: 5 } }

const text = (bytes) => new TextDecoder().decode(bytes)
const bytes = (string) => new TextEncoder().encode(string)
const encode = (content) => mls.encodeMlsMessage({ version: "mls10", ...content }).toBase64()
const save = (state) => mls.encodeGroupState(state)
const load = (state) => ({ ...whole(mls.decodeGroupState(state, 0), state), clientConfig: config })

/** Returns what was decoded, if nothing is left over. */
function whole(decoded, raw) {
  if (decoded?.[1] !== raw.length) throw new Error("this is no message of MLS")
  return decoded[0]
}

function decode(message, ...formats) {
  const raw = Uint8Array.fromBase64(message), decoded = whole(mls.decodeMlsMessage(raw, 0), raw)
  if (!formats.includes(decoded.wireformat)) throw new Error(`this is not ${formats.join(" or ")}`)
  return decoded
}

const infoOf = async (state) => encode({
  wireformat: "mls_group_info",
  // Without external_pub, which ts-mls 1.6.4 writes otherwise than RFC 9420.
  groupInfo: await createGroupInfoWithRatchetTree(state.groupContext, state.confirmationTag, state, state.ratchetTree, [], suite),
})

const leavesOf = (tree) => tree.flatMap((node, n) => (node?.nodeType === "leaf" ? [{ leaf: n / 2, ...identify(node.leaf) }] : []))
const identify = ({ credential, signaturePublicKey }) => ({ actor: text(credential.identity ?? new Uint8Array()), key: signaturePublicKey.toHex() })

/** The signature key of a device. */
export const makeKey = () => suite.signature.keygen()

/** A key package of an actor's device, valid for some days, with its private keys. */
export async function makePackage(actor, key, days) {
  const now = BigInt(Math.floor(Date.now() / 1000)), notAfter = now + BigInt(days * 86400)
  const credential = { credentialType: "basic", identity: bytes(actor) }
  const made = await mls.generateKeyPackageWithKey(credential, mls.defaultCapabilities(), { notBefore: now - 3600n, notAfter }, [], key, suite)
  const ref = (await makeKeyPackageRef(made.publicPackage, suite.hash)).toBase64()
  return { ...made, ref, content: encodeKeyPackage(made.publicPackage).toBase64(), notAfter: Number(notAfter) * 1000 }
}

/** The actor and the key of the device that a package adds, and whether it is of our cipher suite. */
export function readPackage(content) {
  const raw = Uint8Array.fromBase64(content)
  const { cipherSuite, leafNode } = whole(decodeKeyPackage(raw, 0), raw)
  return { ...identify(leafNode), isReadable: cipherSuite === suite.name }
}

/** The devices of a group. */
export const membersOf = (state) => leavesOf(load(state).ratchetTree)

/** The actors whose devices they are. */
export const actorsOf = (state) => [...new Set(membersOf(state).map(({ actor }) => actor))]

export const epochOf = (state) => Number(load(state).groupContext.epoch)

/** Whether the device may still speak: it was not removed. */
export const isActive = (state) => load(state).groupActiveState.kind === "active"

export async function beginGroup(id, { publicPackage, privatePackage }) {
  const state = await mls.createGroup(bytes(id), publicPackage, privatePackage, [], suite, config)
  return { state: save(state), groupInfo: await infoOf(state) }
}

/** Makes a commit that adds packages and removes leaves. Its state holds once it is accepted. */
export async function commit(state, { add = [], remove = [] }) {
  const proposals = [
    ...add.map((content) => ({ proposalType: "add", add: { keyPackage: decodeKeyPackage(Uint8Array.fromBase64(content), 0)[0] } })),
    ...remove.map((removed) => ({ proposalType: "remove", remove: { removed } })),
  ]
  const from = { ...load(state), unappliedProposals: {} } // by value, not by reference, as the engine wants
  const made = await mls.createCommit({ state: from, cipherSuite: suite }, { wireAsPublicMessage: true, extraProposals: proposals, ratchetTreeExtension: true })
  const welcomes = made.welcome ? [encode({ wireformat: "mls_welcome", welcome: made.welcome })] : []
  return { commit: encode(made.commit), groupInfo: await infoOf(made.newState), welcomes, state: save(made.newState) }
}

/** The key packages that a Welcome is for. */
export const packagesOf = (welcome) => decode(welcome, "mls_welcome").welcome.secrets.map(({ newMember }) => newMember.toBase64())

/** Joins by a Welcome with the package that it is for; returns the id of the group and its state. */
export async function join(welcome, { publicPackage, privatePackage }) {
  const state = await mls.joinGroup(decode(welcome, "mls_welcome").welcome, publicPackage, privatePackage, mls.emptyPskIndex, suite, undefined, undefined, config)
  return { id: text(state.groupContext.groupId), state: save(state) }
}

export async function encrypt(state, plaintext) {
  const made = await mls.createApplicationMessage(load(state), bytes(plaintext), suite)
  return { message: encode({ wireformat: "mls_private_message", privateMessage: made.privateMessage }), state: save(made.newState) }
}

/** The group and the epoch that a message is of; nothing of what is none. */
export function headerOf(message) {
  try {
    const { privateMessage, publicMessage } = decode(message, "mls_private_message", "mls_public_message")
    const { groupId, epoch } = privateMessage ?? publicMessage.content
    return { group: text(groupId), epoch: Number(epoch) }
  } catch {
    return {}
  }
}

/** Applies a message of another device: the state after it, the sender by its key, and words if it has any. */
export async function receive(state, message) {
  const before = load(state), decoded = decode(message, "mls_private_message", "mls_public_message")
  const done = await mls.processMessage(decoded, before, mls.emptyPskIndex, mls.acceptAll, suite)
  const sender = await senderOf(before, decoded)
  return { state: save(done.newState), sender, plaintext: done.kind === "applicationMessage" ? text(done.message) : undefined }
}

/** The actor who signed a message: processMessage has checked the signature by the key of that leaf. */
async function senderOf({ groupContext, ratchetTree, keySchedule, historicalReceiverData }, { privateMessage, publicMessage }) {
  if (publicMessage) return leavesOf(ratchetTree).find(({ leaf }) => leaf === publicMessage.content.sender.leafIndex)?.actor
  const isPresent = privateMessage.epoch === groupContext.epoch
  const at = isPresent ? { ratchetTree, ...keySchedule } : historicalReceiverData.get(privateMessage.epoch)
  const { leafIndex } = await decryptSenderData(privateMessage, at.senderDataSecret, suite)
  return leavesOf(at.ratchetTree).find(({ leaf }) => leaf === leafIndex)?.actor
}
