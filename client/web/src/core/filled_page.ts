// One page of a list, of which a call of the master looks at a part alone and answers what it found there.
import type { Result } from "../failure";

/** Behind so many calls a page is shown with what was found: it is asked for again and again. */
const callsMax = 10;

/** `null` and failures as `askPage` answers them; otherwise the last answer, with the elements of all. */
export async function filledPage<Element, Answer extends { nextPageToken: string }>(
  askPage: (pageToken: string, pageSize: number) => Promise<Result<Answer> | null>,
  elementsOf: (answer: Answer) => Element[],
  pageToken: string,
  pageSize: number,
): Promise<Result<Answer> | null> {
  const found: Element[] = [];
  for (let calls = 1; ; ++calls) {
    const answer = await askPage(pageToken, pageSize - found.length);
    if (!answer?.ok) return answer;
    const elements = elementsOf(answer.value);
    found.push(...elements);
    pageToken = answer.value.nextPageToken;
    if (found.length >= pageSize || pageToken === "" || calls === callsMax) {
      elements.splice(0, elements.length, ...found);
      return answer;
    }
  }
}
