import { z } from 'zod';
import { connectionMistakes } from './connection-mistakes.ts';

/** Every mistake of a service's settings at once, one line each; never a value, since a value may be a secret. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
}

/**
 * Reads a service's settings from environment variables.
 * @param schema one zod object; its keys are the variables' names
 * @param environment usually `process.env`; a variable set to '' counts as absent
 * @throws ConfigError naming every variable that is missing or wrong
 */
export function parseConfig<S extends z.ZodObject>(
  schema: S,
  environment: Record<string, string | undefined>,
): z.infer<S> {
  const given = Object.fromEntries(
    Object.entries(environment).filter(([, value]) => value !== undefined && value !== ''),
  );
  const result = schema.safeParse(given);
  const mistakes = connectionMistakes(Object.keys(schema.shape), given);
  if (result.success && mistakes.length === 0) return result.data;
  const issues = result.error?.issues.map((issue) => `${issue.path.join('.')}: ${issue.message}`) ?? [];
  const lines = [...issues, ...mistakes].map((line) => `  ${line}`);
  throw new ConfigError(`these settings are missing or wrong:\n${lines.join('\n')}`);
}

/** More proxies in a row than anybody runs. */
const TRUSTED_PROXIES_MAX = 10;

/** Building blocks of settings: environment variables are text, so each parses its own. */
export const settings = {
  text: () => z.string().min(1),
  /** A whole number within inclusive bounds. */
  integer: (min: number, max: number) => z.coerce.number().int().min(min).max(max),
  port: () => z.coerce.number().int().min(0).max(65_535),
  url: () => z.url(),
  /** An address that paths are appended to: slashes at its end are left out. */
  baseUrl: () => z.url().transform((url) => url.replace(/\/+$/, '')),
  /** Proxies in front whose `X-Forwarded-For` entries are true; 0 takes the address of the connection. */
  trustedProxies: () => z.coerce.number().int().min(0).max(TRUSTED_PROXIES_MAX).default(0),
  /** `host:port,host:port` */
  brokers: () =>
    z
      .string()
      .min(1)
      .transform((text) => text.split(',').map((broker) => broker.trim()))
      .refine((list) => list.every((broker) => /^[^\s:]+:\d+$/.test(broker)), 'expected host:port, comma-separated'),
  /** Hexadecimal secret of at least `bytesMin` bytes. */
  secretHex: (bytesMin: number) =>
    z
      .string()
      .regex(/^([0-9a-fA-F]{2})+$/, 'expected hexadecimal')
      .refine((text) => text.length >= 2 * bytesMin, `expected at least ${bytesMin} bytes`)
      .transform((text) => Buffer.from(text, 'hex')),
  /** What `parse` makes of the text. @param parse throws with a sentence that does not quote it: it may be a secret */
  parsed: <T>(parse: (text: string) => T) =>
    z.string().transform((text, context) => {
      try {
        return parse(text);
      } catch (fault) {
        context.addIssue({ code: 'custom', message: fault instanceof Error ? fault.message : 'is wrong' });
        return z.NEVER;
      }
    }),
  /** What a text in JSON says, for the schema that follows. */
  json: () =>
    z.string().transform((text, context): unknown => {
      try {
        return JSON.parse(text);
      } catch {
        context.addIssue({ code: 'custom', message: 'expected JSON' });
        return z.NEVER;
      }
    }),
  logLevel: () => z.enum(['silent', 'fatal', 'error', 'warn', 'info', 'debug', 'trace']),
} as const;
