/** A block named before it is written, as it stands in the metadata of a committed offset. */
export interface Intent {
  /** Exclusive end of the block; its start is the committed offset. */
  readonly end: number;
  /** Epoch milliseconds when the block was named first. */
  readonly namedAtMs: number;
  /** Version of the transform that builds the block. */
  readonly transformVersion: number;
}

const FORMAT = 1;

/** Metadata of a committed offset: `{v, e, t, s}`; without an intent only the format. */
export function toMetadata(intent: Intent | null): string {
  if (intent === null) return JSON.stringify({ v: FORMAT });
  return JSON.stringify({ v: FORMAT, e: intent.end, t: intent.namedAtMs, s: intent.transformVersion });
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}

/**
 * Reads the intent from the metadata committed with `offset`; null when there is none or it ends there.
 * @throws Error for metadata of a format that this version does not know: going on could write a block twice
 */
export function parseIntent(metadata: string | null, offset: number): Intent | null {
  if (metadata === null || metadata === '') return null;
  let value: unknown;
  try {
    value = JSON.parse(metadata);
  } catch {
    value = null;
  }
  if (!isRecord(value) || value.v !== FORMAT) throw new Error(`unknown metadata at a committed offset: ${metadata}`);
  const { e, t, s } = value;
  if (typeof e !== 'number' || typeof t !== 'number' || typeof s !== 'number' || e <= offset) return null;
  return { end: e, namedAtMs: t, transformVersion: s };
}
