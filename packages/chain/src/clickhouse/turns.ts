/** How questions are batched. */
export interface TurnsOptions<Question, Answer> {
  /** Answers a batch, in the order of its questions. */
  readonly askAll: (questions: readonly Question[]) => Promise<readonly Answer[]>;
  /** Most questions of a batch. */
  readonly sizeMax: number;
  /** Most milliseconds that a question waits for others. */
  readonly waitMaxMs: number;
}

interface Waiting<Question, Answer> {
  readonly question: Question;
  readonly resolve: (answer: Answer) => void;
  readonly reject: (fault: unknown) => void;
}

/**
 * Creates a function that asks questions in batches, so that the cost of a request is shared. While no batch is in
 * flight, a question is sent at once, with others of the same moment. Otherwise it waits until the batch is full,
 * nothing is in flight, or `waitMaxMs` is over. Each caller gets the result that it would get alone: if a batch fails,
 * each of its questions is asked separately.
 */
export function createTurns<Question, Answer>(
  options: TurnsOptions<Question, Answer>,
): (question: Question) => Promise<Answer> {
  const turns = new Turns(options);
  return (question) => turns.ask(question);
}

class Turns<Question, Answer> {
  readonly #options: TurnsOptions<Question, Answer>;
  #waiting: Waiting<Question, Answer>[] = [];
  #underWay = 0;
  #isLooking = false;
  #timer: NodeJS.Timeout | null = null;

  constructor(options: TurnsOptions<Question, Answer>) {
    this.#options = options;
  }

  ask(question: Question): Promise<Answer> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ question, resolve, reject });
      if (this.#isLooking) return;
      this.#isLooking = true;
      // Runs after all events that have arrived by now.
      setImmediate(() => {
        this.#isLooking = false;
        this.#look();
      });
    });
  }

  #look(): void {
    const { sizeMax, waitMaxMs } = this.#options;
    while (this.#waiting.length >= sizeMax || (this.#waiting.length > 0 && this.#underWay === 0)) this.#send();
    if (this.#waiting.length > 0) this.#timer ??= setTimeout(() => this.#send(), waitMaxMs);
  }

  #send(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    this.#underWay++;
    void this.#answer(this.#waiting.splice(0, this.#options.sizeMax)).finally(() => {
      this.#underWay--;
      this.#look();
    });
  }

  async #answer(together: readonly Waiting<Question, Answer>[]): Promise<void> {
    try {
      const answers = await this.#options.askAll(together.map(({ question }) => question));
      for (const [place, { resolve }] of together.entries()) resolve(answers[place] as Answer);
    } catch (fault) {
      if (together.length > 1) await Promise.all(together.map((each) => this.#answer([each])));
      else for (const { reject } of together) reject(fault);
    }
  }
}
