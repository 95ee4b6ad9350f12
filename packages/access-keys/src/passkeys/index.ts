import type { AuthenticationResponseJSON, RegistrationResponseJSON } from '@simplewebauthn/server';
import type { Passkeys } from '../accounts/passkeys.ts';

export interface PasskeysOptions {
  /** Name that devices show, such as that of the product. */
  readonly name: string;
  /**
   * Origin of the portal: `https://portal.example.com`. Passkeys are bound to its host name, which cannot be an IP
   * address.
   */
  readonly origin: string;
}

/** EdDSA, ES256 and RS256: every device supports one of them. The library's default list causes a warning of Node. */
const supportedAlgorithmIDs = [-8, -7, -257];
/** Time for a person to find the device. */
const PROMPT_MS = 5 * 60_000;

/** Loaded at the first use: it takes a tenth of the CPU of a portal's start, and many people use no passkey. */
const library = () => import('@simplewebauthn/server');

/**
 * Passkeys with `@simplewebauthn/server`: no attestation, user verification preferred but not required, and
 * discoverable credentials, so that nobody has to type a login.
 */
export function createPasskeys({ name, origin }: PasskeysOptions): Passkeys {
  const rpID = new URL(origin).hostname;
  const expected = { expectedOrigin: origin, expectedRPID: rpID, requireUserVerification: false };
  return {
    creation: async (owner, challenge) => {
      const { generateRegistrationOptions } = await library();
      return generateRegistrationOptions({
        rpName: name,
        rpID,
        timeout: PROMPT_MS,
        attestationType: 'none',
        userName: owner.login,
        userDisplayName: owner.name,
        userID: new Uint8Array(Buffer.from(owner.id)),
        challenge: toBytes(challenge),
        supportedAlgorithmIDs,
        excludeCredentials: owner.passkeys.map(({ id, transports }) => ({ id, transports })),
        authenticatorSelection: { residentKey: 'required', userVerification: 'preferred' },
      });
    },
    read: async ({ json, challenge }) => {
      const { verifyRegistrationResponse } = await library();
      const response = json as RegistrationResponseJSON;
      const asked = { ...expected, expectedChallenge: challenge, supportedAlgorithmIDs };
      const made = await orNull(verifyRegistrationResponse({ ...asked, response }));
      if (made?.verified !== true) return null;
      const { id, publicKey, counter, transports } = made.registrationInfo.credential;
      return { id, publicKey: toText(publicKey), counter, transports: [...(transports ?? [])] };
    },
    request: async (challenge) => {
      const { generateAuthenticationOptions } = await library();
      return generateAuthenticationOptions({
        rpID,
        timeout: PROMPT_MS,
        userVerification: 'preferred',
        challenge: toBytes(challenge),
      });
    },
    verify: async ({ json, challenge }, { id, publicKey, counter, transports }) => {
      const { verifyAuthenticationResponse } = await library();
      const response = json as AuthenticationResponseJSON;
      const credential = { id, publicKey: toBytes(publicKey), counter, transports };
      const done = await orNull(
        verifyAuthenticationResponse({ ...expected, response, expectedChallenge: challenge, credential }),
      );
      return done?.verified === true ? { counter: done.authenticationInfo.newCounter } : null;
    },
  };
}

/** Null for a throw of the library. It makes no requests, so a throw always means that the response is invalid. */
async function orNull<T>(verified: Promise<T>): Promise<T | null> {
  return verified.catch(() => null);
}

const toBytes = (text: string) => new Uint8Array(Buffer.from(text, 'base64url'));
const toText = (bytes: Uint8Array) => Buffer.from(bytes).toString('base64url');
