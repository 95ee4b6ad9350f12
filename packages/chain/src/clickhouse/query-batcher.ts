export interface QueryBatcherOptions<Query, Answer> {
  /** In the order of the queries. */
  readonly runAll: (queries: readonly Query[]) => Promise<readonly Answer[]>;
  readonly sizeMax: number;
  readonly waitMaxMs: number;
}

interface WaitingQuery<Query, Answer> {
  readonly query: Query;
  readonly resolve: (answer: Answer) => void;
  readonly reject: (fault: unknown) => void;
}

/**
 * Batches queries to share the cost of a request. A query is sent immediately, with others of the same moment, unless
 * a batch is in flight; then it waits at most `waitMaxMs`. If a batch fails, each query is sent alone.
 */
export function createQueryBatcher<Query, Answer>({
  runAll,
  sizeMax,
  waitMaxMs,
}: QueryBatcherOptions<Query, Answer>): (query: Query) => Promise<Answer> {
  const waiting: WaitingQuery<Query, Answer>[] = [];
  let inFlight = 0;
  let timer: NodeJS.Timeout | undefined;

  async function run(batch: readonly WaitingQuery<Query, Answer>[]): Promise<void> {
    try {
      const answers = await runAll(batch.map(({ query }) => query));
      for (const [index, { resolve }] of batch.entries()) resolve(answers[index] as Answer);
    } catch (fault) {
      if (batch.length > 1) await Promise.all(batch.map((each) => run([each])));
      else for (const { reject } of batch) reject(fault);
    }
  }

  function send(): void {
    clearTimeout(timer);
    timer = undefined;
    inFlight++;
    void run(waiting.splice(0, sizeMax)).finally(() => {
      inFlight--;
      sendDue();
    });
  }

  function sendDue(): void {
    while (waiting.length >= sizeMax || (waiting.length > 0 && inFlight === 0)) send();
    if (waiting.length > 0) timer ??= setTimeout(send, waitMaxMs);
  }

  let isScheduled = false;
  return (query) =>
    new Promise((resolve, reject) => {
      waiting.push({ query, resolve, reject });
      if (isScheduled) return;
      isScheduled = true;
      // After all events that have arrived.
      setImmediate(() => {
        isScheduled = false;
        sendDue();
      });
    });
}
