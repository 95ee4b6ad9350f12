import { type Command, EXIT, type ExitCode, parseOptions, type Terminal, UsageError, wordOf } from '../command.ts';
import { checkList, list } from '../erasures/list.ts';
import { show } from '../erasures/show.ts';
import { type ErasuresContext, type ErasuresWork, parseErasureId, withRecords } from '../erasures/stores.ts';
import { remove, scrub } from '../erasures/upkeep.ts';
import { verify } from '../erasures/verify.ts';

const HELP = `usage: operator erasures list    [--environment E] [--state S] [--max 20] [--after ID] [--json]
       operator erasures show    ID [--json]
       operator erasures verify  ID [--json]
       operator erasures scrub   [--json]
       operator erasures remove  [--json]          (npm run erasures -- list)

ID is what the gateway has answered to the request, in x-erasure-id. No word prints an id or a key of a person.

list    requests, the newest first, and how far each has come:
          waiting            no receipt yet
          erased             no query finds a row; rows stand in files, masked, until the next removal
          physically-erased  no row stands in a file
          log-expired        and the log holds nothing of it either
show    the receipt: times, counts by place, ends of the log, hash of the keys, what is still to come and when
verify  looks now for what the receipt says is gone: rows, files, links and consents; and whether the keys looked for are
        those that were erased. What came behind the cut-off is the person's new data
scrub   looks for rows of everybody who was ever erased, and sweeps what it finds. The eraser does so daily; what is found
        is an incident: something wrote behind a fence
remove  writes files with deleted rows anew, waits until the files from before are gone (some eight minutes), looks into
        the rest and marks the receipts. The eraser does so by night

  --environment production, development, or the id of an environment as tables have it: demo-production
  --project demo
  --state       one of the four
  --max 20      so many at most, 1000 at most     --after  go on behind this one
  --json        JSON: of list one line each, else one object

list, show, scrub and remove need CLICKHOUSE_URL with its account, which may delete; verify REDIS_URL too; or a stack that
runs here (.playline/stack.json). All may run beside the eraser, and be ended and begun again at any time.

Exit code: 0 done, 1 it failed: something is left, was found, or the erasure is unfinished or unknown, 2 wrong words, 3 a
store does not answer.`;

const text = { type: 'string' } as const;
const json = { type: 'boolean', default: false } as const;
const LIST_OPTIONS = {
  environment: text,
  state: text,
  max: text,
  after: text,
  json,
  project: { type: 'string', default: 'demo' },
} as const;

interface Word {
  readonly options: Parameters<typeof parseOptions>[1];
  /** Whether it needs the id of an erasure. */
  readonly isOfOne: boolean;
  readonly act: (work: ErasuresWork & { erasureId: Buffer }) => Promise<ExitCode>;
  /** Checks the arguments before any store is opened. @throws UsageError */
  readonly check?: (values: ErasuresWork['values']) => void;
}

const WORDS: Readonly<Record<string, Word>> = {
  list: { options: LIST_OPTIONS, isOfOne: false, act: list, check: checkList },
  show: { options: { json }, isOfOne: true, act: show },
  verify: { options: { json }, isOfOne: true, act: verify },
  scrub: { options: { json }, isOfOne: false, act: scrub },
  remove: { options: { json }, isOfOne: false, act: remove },
};

export function createErasuresCommand(context: ErasuresContext): Command {
  const run = async (args: readonly string[], terminal: Terminal): Promise<ExitCode> => {
    const [name = '', ...rest] = args;
    const word = wordOf(WORDS, name);
    const { values, words } = parseOptions(rest, word.options, rest.length);
    // The argument is not repeated: it may be the id of a person.
    if (words.length > Number(word.isOfOne)) throw new UsageError('a word too many');
    const erasureId = word.isOfOne ? parseErasureId(words[0]) : Buffer.alloc(0);
    word.check?.(values);
    try {
      return await withRecords(context, (records) => word.act({ context, records, values, terminal, erasureId }));
    } catch (fault) {
      if (!context.stop.aborted) throw fault;
      terminal.progress('ended before it was done: nothing is half done, run it again');
      return EXIT.failed;
    }
  };
  const summary = 'list, show and verify erasures; look for what is left, remove it from files';
  return { name: 'erasures', summary, help: HELP, run };
}
