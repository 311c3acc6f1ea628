"""Ctrl-C at each line of a trial, one after the other: text for the head of its source."""

# interrupt_each(live, is_ours): calls live() until an interrupt at none of its lines ended it. How many lines there are,
# and those whose interrupt it did not end with: somebody swallowed that. interrupt_twice() does so at the first two times
# that live() comes to a line by the same two calls, after(line) behind each; interrupt_some() at `count` of its lines, at random.
SOURCE = """
import sys
def place_of(frame):
    return f"{frame.f_code.co_filename.rpartition('/')[2]}:{frame.f_lineno} {frame.f_code.co_name}"
def interrupt_each(live, is_ours, after=lambda line: None):
    line, swallowed = 0, []
    while True:
        line += 1
        left, place = line, None
        def trace(frame, event, arg):
            nonlocal left, place
            if event == "line" and is_ours(frame.f_code):
                left -= 1
                if left == 0:
                    place = place_of(frame)
                    raise KeyboardInterrupt
            return trace
        sys.settrace(trace)
        try: live()
        except KeyboardInterrupt: pass
        else:
            sys.settrace(None)
            if left > 0: return line - 1, swallowed
            swallowed.append(place)
        finally: sys.settrace(None)
        after(line)
def interrupt_twice(live, is_ours, after):
    done, swallowed = set(), []
    while True:
        seen, place = {}, None
        def trace(frame, event, arg):
            nonlocal place
            if not is_ours(frame.f_code): return None
            if event == "line" and place is None:
                callers = frame, frame.f_back, frame.f_back and frame.f_back.f_back
                here = tuple((one.f_code, one.f_lineno) for one in callers if one is not None)
                seen[here] = seen.get(here, 0) + 1
                if seen[here] <= 2 and (here, seen[here]) not in done:
                    done.add((here, seen[here]))
                    place = place_of(frame)
                    raise KeyboardInterrupt
            return trace
        sys.settrace(trace)
        try: live()
        except KeyboardInterrupt: pass
        else:
            sys.settrace(None)
            if place is None: return len(done), swallowed
            swallowed.append(place)
        finally: sys.settrace(None)
        after(len(done))
def interrupt_some(live, is_ours, after, count, seed):
    import random
    def lines_of(wanted):
        line, place = 0, None
        def trace(frame, event, arg):
            nonlocal line, place
            if not is_ours(frame.f_code): return None
            if event == "line":
                line += 1
                if line == wanted:
                    place = place_of(frame)
                    raise KeyboardInterrupt
            return trace
        sys.settrace(trace)
        try: live()
        except (KeyboardInterrupt, SystemExit): place = None    # which Lightning makes of it
        finally: sys.settrace(None)
        return line, place
    line_count, swallowed = lines_of(0)[0], []
    for line in random.Random(seed).sample(range(1, line_count + 1), count):
        _, place = lines_of(line)
        if place is not None: swallowed.append(place)
        after(line)
    return line_count, swallowed
"""
