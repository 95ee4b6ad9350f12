/** What a newcomer wants to know, and the pages that lead to the answer. */
export interface NewcomerPath {
  readonly wants: string;
  /**
   * The pages to read, beginning with the README at the top. Each has a link to the next, with the heading if one is
   * given.
   */
  readonly path: readonly string[];
  /** Matches the answer in the text of the last page. */
  readonly answer: RegExp;
}

export const NEWCOMER_PATHS: readonly NewcomerPath[] = [
  {
    wants: 'How do I start everything on my machine, and how do I stop it?',
    path: ['README.md', 'infra/local/README.md'],
    answer: /`npm run up`, `npm run down`/,
  },
  {
    wants: 'Which rules must a message keep, and how many may I send at once?',
    path: ['README.md', 'packages/contracts/README.md'],
    answer: /\| messages in a batch \| 100, and at least 1 \|/,
  },
  {
    wants: 'Where does a row of `events` get its columns?',
    path: ['README.md', 'packages/events/README.md#where-a-row-gets-its-columns', 'infra/clickhouse/schema'],
    answer: /CREATE TABLE IF NOT EXISTS events\b/,
  },
  {
    wants: 'What happens to players while Redis is away, and to what they send?',
    path: ['README.md', 'services/gateway/README.md#how-it-fails'],
    answer: /\| Redis lost its keys /,
  },
  {
    wants: 'Redis is empty. What do I run, and what if that refuses?',
    path: ['README.md', 'infra/redis/README.md#rebuild', 'services/operator/src/rebuild/README.md'],
    answer: /That one command does everything/,
  },
  {
    wants: 'Why is no message stored twice when a writer is killed in the middle?',
    path: ['README.md', 'services/event-writer/README.md#a-block-that-was-tried-before'],
    answer: /reads which offsets are stored/,
  },
  {
    wants: 'Two players were taken for one person. How do I part them?',
    path: ['README.md', 'services/operator/src/identity/README.md#unlink-split-a-wrong-merge'],
    answer: /together they become one person/,
  },
  {
    wants: 'A player wants to be forgotten. What goes, and how can I show it?',
    path: ['README.md', 'services/eraser/README.md#what-is-promised', 'services/eraser/receipt-by-hand.md'],
    answer: /The fences exist/,
  },
  {
    wants: 'How do I connect to our own Kafka, with TLS and a login?',
    path: ['README.md', 'infra/README.md#connections-to-the-stores'],
    answer: /`KAFKA_SASL_MECHANISM`/,
  },
  {
    wants: 'Something does not serve in the night. What do I look at first?',
    path: ['README.md', 'infra/RUNBOOK.md'],
    answer: /npm run status/,
  },
  {
    wants: 'I add a table. What else must know of it?',
    path: ['README.md', 'infra/clickhouse/README.md#a-new-table-or-column'],
    answer: /packages\/erasure\/src\/stores/,
  },
  {
    wants: 'What do you call a hold, a fence, a block?',
    path: ['README.md', 'GLOSSARY.md'],
    answer: /\| hold \| from acceptance until the end of an erasure/,
  },
  {
    wants: 'Why does the project have a producer for Kafka of its own?',
    path: ['README.md', 'infra/decisions/README.md', 'infra/decisions/0003-topics-schemas-and-releases.md'],
    answer: /its own producer/,
  },
];
