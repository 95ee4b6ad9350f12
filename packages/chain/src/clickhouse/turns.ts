/** What is sent together, and how long a question waits for others. */
export interface TurnsOptions<Question, Answer> {
  /** Answers several at once, in their order. */
  readonly askAll: (questions: readonly Question[]) => Promise<readonly Answer[]>;
  /** Most questions that are sent together. */
  readonly sizeMax: number;
  /** No question waits for longer. */
  readonly waitMaxMs: number;
}

interface Waiting<Question, Answer> {
  readonly question: Question;
  readonly resolve: (answer: Answer) => void;
  readonly reject: (fault: unknown) => void;
}

/**
 * Creates what asks questions in turns. Whoever comes while no turn is under way goes out at once, with those who came in the
 * same moment. Whoever comes later waits for others, until they are enough, or no turn is under way any more, or it has
 * waited long enough: to ask, to wake up and to read an answer then costs once for all of them. Each gets what it would get
 * alone: when several fail, each is asked alone.
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
      // After everything that has arrived by now.
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
