import { parseSignerPublicKey } from '@playline/access-keys';
import {
  clickhouseSettings,
  deploymentSettings,
  kafkaSettings,
  listenerSettings,
  processSettings,
  redisSettings,
  registrySettings,
  settings,
} from '@playline/runtime';
import { z } from 'zod';

/** Names of the own machine: what is sent there leaves it by no network. */
const OWN_MACHINE = ['localhost', '127.0.0.1', '[::1]'];

/** A star in it is a name to nobody but a policy of pages, to which it is every host. */
const HOST = /^([a-z0-9.-]+|\[[0-9a-f:.]+\])$/;

function parseIssuer(text: string): URL {
  const url = URL.parse(text);
  const isSafe = url?.protocol === 'https:' || (url?.protocol === 'http:' && OWN_MACHINE.includes(url.hostname));
  if (
    url === null ||
    !isSafe ||
    !HOST.test(url.hostname) ||
    url.search !== '' ||
    url.hash !== '' ||
    url.username !== ''
  )
    throw new Error('expected an address with https, without a question');
  return url;
}

function parseOrigins(text: string): string[] {
  return text.split(',').map((each) => {
    const url = parseIssuer(each.trim());
    if (url.pathname !== '/') throw new Error('expected origins, such as https://id.example.com, comma-separated');
    return url.origin;
  });
}

const schema = z.object({
  ...processSettings,
  ...listenerSettings,
  HTTP_PORT: listenerSettings.HTTP_PORT.default(8084),
  ADMIN_PORT: processSettings.ADMIN_PORT.default(8085),
  /**
   * The one address under which people use the portal, such as `https://portal.example.com`; it answers under no other.
   * Absent: localhost with the portal's own port. Passkeys know names only, never an address of digits.
   */
  PORTAL_ORIGIN: settings
    .baseUrl()
    .refine((url) => new URL(url).pathname === '/', 'expected an address without a path')
    .optional(),
  /** Signs forms and links, and tells instances apart; the same in every process of one portal. */
  PORTAL_SECRET: settings.secretHex(32),
  /** What private keys of signable keys are sealed to: the public half of whatever signs. Absent: none can be made. */
  SIGNER_PUBLIC_KEY: settings.parsed(parseSignerPublicKey).optional(),
  ...kafkaSettings,
  ...registrySettings,
  ...redisSettings,
  ...clickhouseSettings,
  IDENTITY_PEPPER: deploymentSettings.IDENTITY_PEPPER,
  ERASURE_CLOCK_SKEW_MS: deploymentSettings.ERASURE_CLOCK_SKEW_MS,
  WRITER_GROUP: deploymentSettings.WRITER_GROUP,
  ACCESS_KEY_PREFIX: deploymentSettings.ACCESS_KEY_PREFIX,
  CHAINS: deploymentSettings.CHAINS,
  HTTP_HEADER_PREFIX: deploymentSettings.HTTP_HEADER_PREFIX,
  /** Where clients reach the gateway and the chain API: pages show commands that are ready to send. */
  GATEWAY_URL: settings.baseUrl().optional(),
  CHAIN_API_URL: settings.baseUrl().optional(),
  TRUSTED_PROXIES: settings.trustedProxies(),
  /** A provider of OpenID Connect that people may sign in by, as it calls itself; absent: there is none. */
  OPENID_ISSUER: settings.parsed(parseIssuer).optional(),
  /** What the provider calls the portal, and knows it by. */
  OPENID_CLIENT_ID: settings.text().optional(),
  OPENID_CLIENT_SECRET: settings.text().optional(),
  /** What the button says behind "Sign in with". */
  OPENID_LABEL: settings.text().default('single sign-on'),
  /** Other origins that are the provider's, `https://…,https://…`: where it sends people, and is asked. */
  OPENID_ALSO_AT: settings.parsed(parseOrigins).optional(),
});

/** Settings of the portal, by the names of their environment variables. */
export const configSchema = schema.superRefine((config, context) => {
  const names = ['OPENID_ISSUER', 'OPENID_CLIENT_ID', 'OPENID_CLIENT_SECRET'] as const;
  const missing = names.filter((name) => config[name] === undefined);
  if (missing.length === names.length) return;
  for (const name of missing)
    context.addIssue({ code: 'custom', path: [name], message: 'missing, while others of the provider are set' });
});

export type Config = z.infer<typeof configSchema>;

/** What is known of the provider that people may sign in by; null when there is none. */
export function toOpenId(config: Config) {
  const { OPENID_ISSUER: issuer, OPENID_CLIENT_ID: clientId, OPENID_CLIENT_SECRET: clientSecret } = config;
  if (issuer === undefined || clientId === undefined || clientSecret === undefined) return null;
  return { issuer, clientId, clientSecret, label: config.OPENID_LABEL, alsoAt: config.OPENID_ALSO_AT ?? [] };
}

/** What pages show of keys, headers and addresses. */
export function toSettings(config: Config) {
  return {
    keyPrefix: config.ACCESS_KEY_PREFIX,
    signerKey: config.SIGNER_PUBLIC_KEY ?? null,
    servedChains: config.CHAINS ?? null,
    headerPrefix: config.HTTP_HEADER_PREFIX,
    gatewayUrl: config.GATEWAY_URL ?? 'http://127.0.0.1:8080',
    chainApiUrl: config.CHAIN_API_URL ?? 'http://127.0.0.1:8082',
  };
}
