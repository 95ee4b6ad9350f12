import { createHash, generateKeyPairSync, randomBytes, sign } from 'node:crypto';

interface CeremonyOptions {
  readonly challenge: string;
}

const USER_PRESENT = 0x01;
const USER_VERIFIED = 0x04;
const HAS_CREDENTIAL = 0x40;

/** A WebAuthn device with a single passkey. */
export function createSoftwareAuthenticator({ origin, rpId }: { readonly origin: string; readonly rpId: string }) {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const { x = '', y = '' } = publicKey.export({ format: 'jwk' });
  const id = randomBytes(16);
  const state = { counter: 0, flags: USER_PRESENT | USER_VERIFIED };
  const authDataOf = (flags: number) => {
    const flagsAndCounter = Buffer.alloc(5);
    flagsAndCounter.writeUInt8(flags, 0);
    flagsAndCounter.writeUInt32BE(state.counter, 1);
    return Buffer.concat([createHash('sha256').update(rpId).digest(), flagsAndCounter]);
  };
  const clientData = (type: string, { challenge }: CeremonyOptions) =>
    Buffer.from(JSON.stringify({ type, challenge, origin, crossOrigin: false }));
  const toResponse = (response: Record<string, Buffer>) => ({
    id: toText(id),
    rawId: toText(id),
    type: 'public-key',
    clientExtensionResults: {},
    response: Object.fromEntries(Object.entries(response).map(([name, bytes]) => [name, toText(bytes)])),
  });
  return {
    state,
    id: toText(id),
    create: (options: CeremonyOptions) => {
      const cose = toCbor(
        new Map<unknown, unknown>([
          [1, 2],
          [3, -7],
          [-1, 1],
          [-2, fromText(x)],
          [-3, fromText(y)],
        ]),
      );
      const length = Buffer.from([0, id.length]);
      const authData = Buffer.concat([authDataOf(state.flags | HAS_CREDENTIAL), Buffer.alloc(16), length, id, cose]);
      const attestation = new Map<unknown, unknown>([
        ['fmt', 'none'],
        ['attStmt', new Map()],
        ['authData', authData],
      ]);
      return toResponse({
        clientDataJSON: clientData('webauthn.create', options),
        attestationObject: toCbor(attestation),
      });
    },
    get: (options: CeremonyOptions) => {
      const [authenticatorData, clientDataJSON] = [authDataOf(state.flags), clientData('webauthn.get', options)];
      const signed = Buffer.concat([authenticatorData, createHash('sha256').update(clientDataJSON).digest()]);
      return toResponse({ authenticatorData, clientDataJSON, signature: sign('sha256', signed, privateKey) });
    },
  };
}

/** The subset of CBOR that WebAuthn needs. */
function toCbor(value: unknown): Buffer {
  if (typeof value === 'number') return value >= 0 ? cborHeader(0, value) : cborHeader(1, -1 - value);
  if (typeof value === 'string') return Buffer.concat([cborHeader(3, Buffer.byteLength(value)), Buffer.from(value)]);
  if (Buffer.isBuffer(value)) return Buffer.concat([cborHeader(2, value.length), value]);
  if (value instanceof Map)
    return Buffer.concat([cborHeader(5, value.size), ...[...value].flat().map((each: unknown) => toCbor(each))]);
  throw new Error('unsupported CBOR type');
}

function cborHeader(major: number, length: number): Buffer {
  if (length < 24) return Buffer.from([(major << 5) | length]);
  return length < 256
    ? Buffer.from([(major << 5) | 24, length])
    : Buffer.from([(major << 5) | 25, length >> 8, length & 255]);
}

const toText = (bytes: Buffer) => bytes.toString('base64url');
const fromText = (text: string) => Buffer.from(text, 'base64url');
