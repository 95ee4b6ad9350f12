import type { ChainStore, TokenRow } from '@playline/chain';

const RETRY_MS = 60_000;

export interface ExampleToken {
  /** Null until the service serves a token. */
  current(): TokenRow | null;
  close(): void;
}

/** Reads a token for the first example, and repeats the read until there is one: a new deployment has no tokens. */
export function findExampleToken(
  { findToken }: Pick<ChainStore, 'findToken'>,
  chains: readonly { readonly name: string }[],
  retryMs: number = RETRY_MS,
): ExampleToken {
  const names = chains.map(({ name }) => name);
  let token: TokenRow | null = null;
  let timer: NodeJS.Timeout | undefined;
  let isClosed = false;
  const read = async () => {
    // The documentation does not need the store, and other reads report its faults.
    token = await findToken(names).catch(() => null);
    if (token === null && !isClosed) timer = setTimeout(read, retryMs).unref();
  };
  void read();
  return {
    current: () => token,
    close() {
      isClosed = true;
      clearTimeout(timer);
    },
  };
}
