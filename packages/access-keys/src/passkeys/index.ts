import {
  type AuthenticationResponseJSON,
  generateAuthenticationOptions,
  generateRegistrationOptions,
  type RegistrationResponseJSON,
  verifyAuthenticationResponse,
  verifyRegistrationResponse,
} from '@simplewebauthn/server';
import type { Passkeys } from '../accounts/passkeys.ts';

export interface PasskeysOptions {
  /** What devices show people; such as the name of the product. */
  readonly name: string;
  /** Where the portal is: `https://portal.example.com`. Its host is what passkeys are bound to; an IP address has none. */
  readonly origin: string;
}

/** EdDSA, ES256 and RS256: all devices know one of them. The library's own list asks Node for what it warns of. */
const supportedAlgorithmIDs = [-8, -7, -257];
/** A person may look for the device as long. */
const ASKED_MS = 5 * 60_000;

/**
 * Passkeys by `@simplewebauthn/server`. Which device it is nobody asks; that it has made sure of the person is wished, not
 * demanded. Devices keep the login with the key, so that nobody has to type it.
 */
export function createPasskeys({ name, origin }: PasskeysOptions): Passkeys {
  const rpID = new URL(origin).hostname;
  const expected = { expectedOrigin: origin, expectedRPID: rpID, requireUserVerification: false };
  return {
    creation: (owner, challenge) =>
      generateRegistrationOptions({
        ...{ rpName: name, rpID, timeout: ASKED_MS, attestationType: 'none' },
        ...{ userName: owner.login, userDisplayName: owner.name, userID: new Uint8Array(Buffer.from(owner.id)) },
        ...{ challenge: toBytes(challenge), supportedAlgorithmIDs },
        excludeCredentials: owner.passkeys.map(({ id, transports }) => ({ id, transports })),
        authenticatorSelection: { residentKey: 'required', userVerification: 'preferred' },
      }),
    read: async ({ json, challenge }) => {
      const response = json as RegistrationResponseJSON;
      const asked = { ...expected, expectedChallenge: challenge, supportedAlgorithmIDs };
      const made = await orNull(verifyRegistrationResponse({ ...asked, response }));
      if (made?.verified !== true) return null;
      const { id, publicKey, counter, transports } = made.registrationInfo.credential;
      return { id, publicKey: toText(publicKey), counter, transports: [...(transports ?? [])] };
    },
    request: (challenge) =>
      generateAuthenticationOptions({
        ...{ rpID, timeout: ASKED_MS, userVerification: 'preferred' },
        challenge: toBytes(challenge),
      }),
    verify: async ({ json, challenge }, { id, publicKey, counter, transports }) => {
      const response = json as AuthenticationResponseJSON;
      const credential = { id, publicKey: toBytes(publicKey), counter, transports };
      const done = await orNull(
        verifyAuthenticationResponse({ ...expected, response, expectedChallenge: challenge, credential }),
      );
      return done?.verified === true ? { counter: done.authenticationInfo.newCounter } : null;
    },
  };
}

/** What it throws is about what was sent: it asks nobody. */
async function orNull<T>(verified: Promise<T>): Promise<T | null> {
  return verified.catch(() => null);
}

const toBytes = (text: string) => new Uint8Array(Buffer.from(text, 'base64url'));
const toText = (bytes: Uint8Array) => Buffer.from(bytes).toString('base64url');
