import type { AuthenticationResponseJSON, RegistrationResponseJSON } from '@simplewebauthn/server';
import type { Passkeys } from '../accounts/passkeys.ts';

/** EdDSA, ES256 and RS256. The library's default list triggers a warning in Node. */
const supportedAlgorithmIDs = [-8, -7, -257];
/** Time limit for a person to confirm on the device. */
const PROMPT_MS = 5 * 60_000;

/** Loaded on first use, which reduces the portal's startup CPU time by a tenth. */
const library = () => import('@simplewebauthn/server');

/**
 * Requests no attestation, optional user verification, and discoverable credentials, which need no login. Passkeys are
 * bound to the origin's host name, which cannot be an IP address. @param portal.name shown by devices
 */
export function createPasskeys({ name, origin }: { readonly name: string; readonly origin: string }): Passkeys {
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
      const options = { ...expected, expectedChallenge: challenge, supportedAlgorithmIDs };
      const result = await orNull(verifyRegistrationResponse({ ...options, response }));
      if (result?.verified !== true) return null;
      const { id, publicKey, counter, transports } = result.registrationInfo.credential;
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
      const result = await orNull(
        verifyAuthenticationResponse({ ...expected, response, expectedChallenge: challenge, credential }),
      );
      return result?.verified === true ? { counter: result.authenticationInfo.newCounter } : null;
    },
  };
}

/** The library makes no requests, so an error always means that the response is invalid. */
const orNull = async <T>(verified: Promise<T>): Promise<T | null> => verified.catch(() => null);

const toBytes = (text: string) => new Uint8Array(Buffer.from(text, 'base64url'));
const toText = (bytes: Uint8Array) => Buffer.from(bytes).toString('base64url');
